"""Models in memory: objects of other libraries, and the bytes of both formats."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import openvino
import pytest

import bridge
from bridge.check.files import as_file
from bridge.errors import InvalidModelError, UsageError

from ..support.running import OnnxRuntime, OpenVino

TEXT = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[N, 2] x, bool c) => (float[N, 2] y) <float[2] w = {2, 3}> {
  z = Mul(x, w)
  y = If (c) <
    then_branch = a () => (float[N, 2] t) { t = Add(z, w) },
    else_branch = b () => (float[N, 2] u) { u = Neg(z) }>
}
"""

MODEL = onnx.parser.parse_model(TEXT)
FEED = {"x": np.array([[1, 2], [3, 4]], np.float32), "c": np.array(True)}
EXPECTED = FEED["x"] * [2, 3] + [2, 3]


def library_object(module: str, name: str, **attributes: Any) -> Any:
    """An object like the one of a library that may not be installed."""
    return type(name, (), {"__module__": module, **attributes})()


def pair(tmp_path: Path) -> tuple[bytes, bytes]:
    bridge.convert(MODEL, tmp_path / "m.xml")
    return (tmp_path / "m.xml").read_bytes(), (tmp_path / "m.bin").read_bytes()


KINDS = {
    "bytes": lambda folder: MODEL.SerializeToString(),
    "a view of bytes": lambda folder: memoryview(MODEL.SerializeToString()),
    "a binary file": lambda folder: io.BytesIO(MODEL.SerializeToString()),
    "an IR's bytes": pair,
    "an openvino.Model": lambda folder: bridge.to_openvino(MODEL),
    "OpenVINO's reading": lambda folder: openvino.Core().read_model(MODEL.SerializeToString()),
    "a program of torch": lambda folder: library_object(
        "torch.onnx._internal.exporter._onnx_program", "ONNXProgram", model_proto=MODEL
    ),
    "a function of onnxscript": lambda folder: library_object(
        "onnxscript.values", "OnnxFunction", to_model_proto=lambda self: MODEL
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_goes_both_ways(kind: str, tmp_path: Path) -> None:
    (result,) = OnnxRuntime(bridge.to_onnx(KINDS[kind](tmp_path))).run(FEED)
    np.testing.assert_array_equal(result, EXPECTED)
    bridge.convert(KINDS[kind](tmp_path), tmp_path / "out.xml")
    (result,) = OpenVino(tmp_path / "out.xml").run(list(FEED.values()))
    np.testing.assert_array_equal(result, EXPECTED)
    assert bridge.load(KINDS[kind](tmp_path)).graph.inputs[0].name == "x"
    written = as_file(KINDS[kind](tmp_path), tmp_path / "written")
    assert written.suffix == (".xml" if "IR" in kind or "openvino" in kind.lower() else ".onnx")


def test_an_onnx_ir_model(tmp_path: Path) -> None:
    onnx_ir = pytest.importorskip("onnx_ir", reason="onnx_ir is not installed")
    weights = np.arange(4096, dtype=np.float32).reshape(2048, 2)
    model = onnx.parser.parse_model(TEXT.replace("float[2] w = {2, 3}", "float[2] w = {0, 1}"))
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "big"))
    model.graph.node[0].input[1] = "big"
    path = tmp_path / "m.onnx"
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    loaded = onnx_ir.load(path)
    (result,) = OnnxRuntime(bridge.to_onnx(loaded)).run(
        {**FEED, "x": np.ones((2048, 2), np.float32)}
    )
    np.testing.assert_array_equal(result, weights + np.float32([0, 1]))


def test_a_function(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 18, "f" : 1]>
    g (float[2] x) => (float[2] y) { y = f.twice(x) }
    <domain: "f", opset_import: ["" : 18]> twice (a) => (b) { b = Add(a, a) }"""
    (function,) = onnx.parser.parse_model(text).functions
    with pytest.raises(UsageError, match="does not say which type its input 'a' has"):
        bridge.load(function)
    function.value_info.append(onnx.helper.make_tensor_value_info("a", 1, ["N"]))
    model = bridge.load(function)
    assert model.graph.nodes[0].op == "Add"


def test_the_bytes_of_an_ir_have_its_weights_in_memory(tmp_path: Path) -> None:
    (xml, weights) = pair(tmp_path)
    model = bridge.load((xml, weights))
    bridge.save(model, tmp_path / "again.xml")
    assert (tmp_path / "again.xml").read_bytes() == xml
    with pytest.raises(InvalidModelError, match="is the file truncated"):
        bridge.to_onnx((xml, weights[:4]))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (None, "not None"),
        (17, "a model is a path, .* not of type int"),
        (io.StringIO("ir_version"), "open it in binary mode"),
        (("a", "b"), "a pair is the bytes of an .xml and the bytes of its .bin"),
        ((b"<net/>", "weights"), "not of type str"),
        (openvino.Core(), "not of type openvino.Core"),
        (library_object("torch.nn.modules", "Linear", state_dict=None), "export it first"),
        (
            library_object("onnxruntime.capi", "InferenceSession", get_inputs=None, run=None),
            "give the path of the model that it has loaded",
        ),
    ],
)
def test_what_is_no_model(source: Any, says: str) -> None:
    for call in (bridge.load, bridge.to_onnx, bridge.to_openvino):
        with pytest.raises(UsageError, match=says):
            call(source)


def test_a_compiled_model_is_none() -> None:
    compiled = openvino.Core().compile_model(bridge.to_openvino(MODEL), "CPU")
    with pytest.raises(UsageError, match=r"give the openvino\.Model that was compiled"):
        bridge.load(compiled)


def test_nothing_is_imported_to_recognise_what_is_there_not() -> None:
    code = (
        "import sys, bridge\n"
        "try: bridge.load(object())\n"
        "except bridge.UsageError: print(*{n.partition('.')[0] for n in sys.modules})"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"openvino", "onnx", "torch", "onnx_ir"} & set(finished.stdout.split())
