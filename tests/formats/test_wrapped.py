"""ONNX models of one node that names an IR: the form in which onnxruntime's provider takes IRs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bridge
from bridge.check import check
from tests.support.running import OpenVino

PLAIN = """
<ir_version: 9, opset_import: ["" : 20]>
g (float[n,4] a, float[n,3] b) => (float[n,3] sum, float[n,3] product)
<float[4,3] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}>
{
    product = MatMul (a, w)
    sum = Add (product, b)
}
"""


def wrap(
    folder: Path,
    inputs: dict[str, int],
    outputs: list[str],
    named: str = "plain.xml",
    embedded: bool = False,
) -> Path:
    """A model whose node names an IR, beside the IR of `PLAIN`."""
    if not (folder / "plain.xml").exists():
        bridge.convert(onnx.parser.parse_model(PLAIN), folder / "plain.xml")
    node = helper.make_node(
        "EPContext", [*inputs], outputs, "e", domain="com.microsoft", ep_cache_context=named,
        embed_mode=int(embedded), source="OpenVINOExecutionProvider",
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "wrapped.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["a", "b"], ["sum", "product"]),
        (["b", "a"], ["product", "sum"]),
        (["p", "q"], ["r", "s"]),
        (["b"], ["product"]),
        (["b", "a"], ["sum"]),
    ],
)
@pytest.mark.parametrize("suffix", [".xml", ".onnx"])
def test_has_the_names_of_the_node(
    inputs: list[str], outputs: list[str], suffix: str, tmp_path: Path
) -> None:
    path = wrap(tmp_path, dict.fromkeys(inputs, F32), outputs)
    report = bridge.convert(path, tmp_path / f"made{suffix}")
    assert any("the IR plain.xml" in line for line in report.lines())
    made = bridge.load(tmp_path / f"made{suffix}")
    assert [value.name for value in made.graph.inputs][: len(inputs)] == inputs
    assert made.graph.output_names == outputs
    bridge.convert(path, tmp_path / "ir.xml", force=True)
    feed = {"a": np.ones((2, 4), np.float32), "b": np.full((2, 3), 5, np.float32)}
    feed |= {"p": feed["a"], "q": feed["b"]}
    names = [value.name for value in made.graph.inputs]
    got = OpenVino(tmp_path / "ir.xml").run([feed[name] for name in names])
    product = feed["a"] @ np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = {"sum": product + 5, "product": product, "r": product + 5, "s": product}
    for name, value in zip(outputs, got, strict=True):
        np.testing.assert_array_equal(value, expected[name])


def test_is_checked_as_the_ir(tmp_path: Path) -> None:
    report = check(wrap(tmp_path, {"b": F32, "a": F32}, ["sum"]), samples=1, quick=True)
    assert report.ok


def test_its_files_are_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(bridge.UsageError, match="is read from it"):
        bridge.convert(wrap(tmp_path, {"b": F32, "a": F32}, ["sum"]), tmp_path / "plain.xml")


Change = Callable[[Path], object]


@pytest.mark.parametrize(
    ("named", "change", "why"),
    [
        ("../plain.xml", None, "is outside"),
        ("/plain.xml", None, "is outside"),
        ("none.xml", None, "cannot be read"),
        ("pipe.xml", lambda home: os.mkfifo(home / "pipe.xml"), "no regular file"),
        ("link.xml", lambda home: (home / "link.xml").symlink_to("/etc/hosts"), "is a link"),
        ("plain.xml", lambda home: (home / "plain.bin").unlink(), "weights cannot be read"),
        (
            "copy.xml",
            lambda home: (
                shutil.copy(home / "plain.xml", home / "copy.xml"),
                (home / "copy.bin").symlink_to("/etc/hosts"),
            ),
            "is a link",
        ),
        ("plain.xml", lambda home: (home / "plain.xml").write_text("<net"), "plain.xml"),
    ],
)
def test_reads_files_of_its_folder_alone(
    named: str, change: Change | None, why: str, tmp_path: Path
) -> None:
    path = wrap(tmp_path, {"b": F32, "a": F32}, ["sum"], named)
    if change is not None:
        change(tmp_path)
    with pytest.raises(bridge.InvalidModelError, match=why):
        bridge.load(path)


@pytest.mark.parametrize(
    ("inputs", "outputs", "why"),
    [
        ({"b": F32, "a": F16}, ["sum"], r"b \(f32\), a \(f16\) and b \(f32\), a \(f32\)"),
        (
            {"x": F32},
            ["sum"],
            r"inputs of the node and of its IR differ: x \(f32\) and a",
        ),
        ({"a": F32, "b": F32}, ["x"], "outputs of the node and of its IR differ"),
    ],
)
def test_another_boundary_is_an_error(
    inputs: dict[str, int], outputs: list[str], why: str, tmp_path: Path
) -> None:
    with pytest.raises(bridge.InvalidModelError, match=why):
        bridge.load(wrap(tmp_path, inputs, outputs))


@pytest.mark.parametrize(("named", "embedded"), [("plain.blob", False), ("plain.xml", True)])
def test_what_is_compiled_is_refused(named: str, embedded: bool, tmp_path: Path) -> None:
    path = wrap(tmp_path, {"a": F32, "b": F32}, ["sum"], named, embedded)
    with pytest.raises(bridge.UnsupportedError, match="what OpenVINOExecutionProvider compiled"):
        bridge.convert(path, tmp_path / "made.xml")
