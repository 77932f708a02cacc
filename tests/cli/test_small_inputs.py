"""Small mistakes of people: each ends in a sentence that says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import openvino
import pytest

import bridge
from tests.support.command_line import bridge as command

MODEL = """<ir_version: 9, opset_import: ["": 21]>
g (float[1,3,8,8] x) => (float[1,3,8,8] out) { [Head] h = Relu(x) [Join] out = Sigmoid(h) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    for name in ("empty.npy", "empty.npz"):
        (tmp_path / name).touch()
    (tmp_path / "text.xml").write_text("remember the milk\n")
    bridge.convert(tmp_path / "m.onnx", tmp_path / "m.xml")
    return tmp_path / "m.onnx"


TOLD = {
    "an empty file as inputs": (
        ["check", "{}/m.onnx", "{}/m.xml", "--inputs", "{}/empty.npz"],
        "empty.npz: is no .npz that can be read",
    ),
    "an empty array as inputs": (
        ["check", "{}/m.onnx", "{}/m.xml", "--inputs", "{}/empty.npy"],
        "empty.npy: is no .npy that can be read",
    ),
    "an empty array as a value": (
        ["convert", "{}/m.onnx", "{}/n.xml", "--value", "x={}/empty.npy"],
        "--value x={}/empty.npy: is no array that can be read",
    ),
    "a layout the other way round": (
        ["convert", "{}/m.onnx", "{}/n.xml", "--layout", "x=NHWC:NCHW"],
        'where the tensor stands first, as for OVMS, it is "NCHW->NHWC" here',
    ),
    "two devices": (
        ["convert", "{}/m.onnx", "{}/n.xml", "--device", "CPU", "--device", "GPU"],
        "--device: is given twice, and takes one value",
    ),
    "two operator sets": (
        ["convert", "{}/m.onnx", "{}/n.onnx", "--opset", "17", "--opset=18"],
        "--opset: is given twice, and takes one value",
    ),
    "a file of text": (
        ["convert", "{}/m.onnx", "{}/text.xml"],
        "text.xml: would be overwritten, but is text, not an IR",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_it_is_told(name: str, model: Path) -> None:
    arguments, said = TOLD[name]
    folder = str(model.parent)
    finished = command(*(each.replace("{}", folder) for each in arguments))
    assert finished.code == 2 and said.replace("{}", folder) in finished.err, finished.err
    assert not (model.parent / "n.xml").exists()


@pytest.mark.parametrize("names", [["Head"], ["h"], ["Join", "Head"]])
def test_outputs_by_the_name_of_a_node(names: list[str], model: Path) -> None:
    outputs = {"Head": "h", "Join": "out"}
    bridge.convert(model, model.parent / "n.xml", outputs=names)
    written = bridge.load(model.parent / "n.xml").graph.output_names
    assert written == [outputs.get(name, name) for name in names]


def test_a_model_without_ifs_needs_no_line_that_none_is_left(model: Path) -> None:
    report = bridge.convert(model, model.parent / "n.xml", input_shapes={"x": [1, 3, 9, 9]})
    assert report.specialized == []


def test_a_stream_without_end(tmp_path: Path) -> None:
    with Path("/dev/zero").open("rb") as zeros:
        finished = subprocess.run(
            [sys.executable, "-m", "bridge", "convert", "-", str(tmp_path / "n.xml")],
            stdin=zeros, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert finished.returncode == 2 and "-: is no ONNX model" in finished.stderr


@pytest.mark.parametrize(
    "equation", ["......ii,...jj->...ij", "ij,jk->......ik", "i1,ij->j", "i$,ij"]
)
def test_an_equation_that_is_none(equation: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 19]>
        g (float[3,3] x, float[3,3] y) => (float[3] z) {{
          z = Einsum <equation: string = "{equation}"> (x, y) }}"""
    )
    with pytest.raises(bridge.InvalidModelError, match=r'Einsum "z": its equation .* is none'):
        bridge.convert(model, tmp_path / "n.xml")


BLOCKS = """<ir_version: 10, opset_import: ["": 21]> g (int8[4,6] w, float[{}] s) => (float[4,6] y)
{{ y = DequantizeLinear <axis = 0, block_size = 2> (w, s) }}"""


def test_scales_of_blocks_along_the_axis_that_fits(tmp_path: Path) -> None:
    report = bridge.convert(onnx.parser.parse_model(BLOCKS.format("4,3")), tmp_path / "n.xml")
    assert report.notes == [
        'graph / DequantizeLinear "y": says axis 0, and its scales fit axis 1 alone, which it got'
    ]
    w = np.arange(24, dtype=np.int8).reshape(4, 6)
    s = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(4, 3)
    compiled = openvino.Core().compile_model(tmp_path / "n.xml", "CPU")
    (found,) = compiled([w, s]).values()
    np.testing.assert_allclose(found, w * np.repeat(s, 2, 1), rtol=1e-6)


def test_scales_of_blocks_that_fit_no_axis(tmp_path: Path) -> None:
    with pytest.raises(
        bridge.UnsupportedError,
        match=r"\[3,3\] are no scales of blocks of 2 along axis 0 of \[4,6\]",
    ):
        bridge.convert(onnx.parser.parse_model(BLOCKS.format("3,3")), tmp_path / "n.xml")
