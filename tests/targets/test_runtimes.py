"""A model of ONNX keeps operators without a kernel in onnxruntime. Models of IR get other forms;
`tests/operators` runs them, and here the default session of onnxruntime does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import openvino as ov
import pytest
from openvino import opset1, opset8

import bridge

HEAD = '<ir_version: 9, opset_import: ["" : 18]> '

KEPT = {
    "a sum in f16": """g (float16[4] x, int64[2] i, float16[2] u) => (float16[4] y) {
        y = ScatterElements <reduction = "add"> (x, i, u) }""",
    "values of f64": """g (int64[3] i, double[2] v) => (double[3, 4] y) {
        d = Constant <value = int64 {4}> ()
        y = OneHot (i, d, v) }""",
    "exponents of bytes": """g (float[4] x, uint8[4] e) => (float[4] y) { y = Pow (x, e) }""",
    "dilations and SAME": """g (float[1, 1, 9, 9] x, float[1, 1, 3, 3] w) => (float[1, 1, 9, 9] y) {
        y = Conv <auto_pad = "SAME_UPPER", dilations = [2, 2]> (x, w) }""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_a_model_of_onnx_keeps_its_operators(text: str) -> None:
    model = onnx.parser.parse_model(HEAD + text)
    written = bridge.to_onnx(model, opset=18)
    assert sorted(n.op_type for n in written.graph.node if n.op_type != "Constant") == sorted(
        n.op_type for n in model.graph.node if n.op_type != "Constant"
    )


X = np.random.default_rng(3).uniform(-1, 3, (1, 4, 6, 6)).astype(np.float32)
WEIGHTS = np.random.default_rng(4).integers(-127, 128, (4, 4, 1, 1)).astype(np.float32) / 64
WEIGHTS[:, 0] = 127 / 64  # So onnxruntime, which makes bytes of them, changes nothing.
BETWEEN: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda x: x,
    "Convolution": lambda x: opset1.convolution(x, WEIGHTS, [1, 1], [0, 0], [0, 0], [1, 1]),
    "AvgPool": lambda x: opset1.avg_pool(x, [1, 1], [0, 0], [0, 0], [2, 2], True),
    "MaxPool": lambda x: opset1.max_pool(x, [1, 1], [0, 0], [0, 0], [2, 2]),
    "mean of an image": lambda x: opset1.reduce_mean(x, np.int64([2, 3]), True),
    "Sigmoid": opset1.sigmoid,
    "PRelu": lambda x: opset1.prelu(x, np.float32([0.1])),
    "Softmax": lambda x: opset8.softmax(x, -1),
    "Transpose": lambda x: opset1.transpose(x, np.int64([0, 1, 3, 2])),
}


STEPS = np.float32([0.031, 0.017, 0.043, 0.029]).reshape(1, -1, 1, 1)


def _quantised(x: Any, channels: int, levels: int) -> Any:
    """A FakeQuantize with limits for one channel or for all."""
    step = STEPS[:, :channels]
    low, high = -step * (levels // 2), step * ((levels - 1) // 2)
    return opset1.fake_quantize(x, low, high, low, high, levels)


@pytest.mark.parametrize("levels", [256, 255])
@pytest.mark.parametrize("channels", [(4, 4), (4, 1), (1, 4), (1, 1)])
@pytest.mark.parametrize("name", BETWEEN)
def test_quantised_activations_run_by_default(
    name: str, channels: tuple[int, int], levels: int, tmp_path: Path
) -> None:
    x = opset1.parameter(list(X.shape), np.float32, "x")
    made = _quantised(BETWEEN[name](_quantised(x, channels[0], levels)), channels[1], levels)
    ov.save_model(ov.Model([made.output(0)], [x]), tmp_path / "a.xml", compress_to_fp16=False)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    bridge.convert(tmp_path / "b.onnx", tmp_path / "c.xml")
    engine = ov.Core().compile_model(tmp_path / "c.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = next(iter(engine([X]).values()))
    session = onnxruntime.InferenceSession(tmp_path / "b.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: X})
    steps = np.abs(found - expected) / STEPS[:, : channels[1]]
    assert steps.max() < 1.01  # Numbers halfway between two steps.
    if (name, levels) == ("Convolution", 256):
        assert (tmp_path / "c.xml").read_text().count('type="FakeQuantize"') == 2


def test_openvino_reads_empty_constants(tmp_path: Path) -> None:
    """A state that starts without elements, as the IR of a ConvLSTM2D has it."""
    x, state = opset1.parameter([2, 3], np.float32, "x"), opset1.parameter([-1, -1], np.float32)
    x.output(0).set_names({"x"})
    inner, trip = opset1.parameter([2, 3], np.float32), opset1.parameter([], np.int64)
    grown = opset1.add(inner, opset1.reduce_sum(state, np.int64([0, 1]), False))
    going = opset1.constant(np.array(True))
    body = ov.Model([going.output(0), grown.output(0)], [trip, state, inner])
    loop = opset8.loop(opset1.constant(np.int64(3)), opset1.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([0, 0])
    nothing = ov.op.Constant(ov.Tensor(ov.Type.f32, ov.Shape([0, 0])))
    loop.set_merged_input(state, nothing.output(0), grown.output(0))
    loop.set_invariant_input(inner, x.output(0))
    result = loop.get_iter_value(grown.output(0), -1)
    ov.save_model(ov.Model([result], [x]), tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    given = np.arange(6).reshape(2, 3).astype(np.float32)
    (expected,) = ov.Core().compile_model(tmp_path / "a.xml", "CPU")([given]).values()
    (found,) = ov.Core().compile_model(tmp_path / "b.onnx", "CPU")([given]).values()
    assert np.array_equal(found, expected)
    session = onnxruntime.InferenceSession(tmp_path / "b.onnx")
    assert np.array_equal(session.run(None, {"x": given})[0], expected)
