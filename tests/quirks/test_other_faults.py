"""Faults of the engines without a quirk; other tests avoid them. A test fails once its fault is
gone.

Some faults are in the kernels for one kind of processor. On others their tests are plain tests.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import openvino
import pytest
from onnx import parser
from openvino import opset13 as ops

from tests.support.processor import FEATURES
from tests.support.running import EXACT, OnnxRuntime

ONNXRUNTIME = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])


def run_openvino(outputs: list[openvino.Output], inputs: list, arrays: list[np.ndarray]) -> list:
    model = openvino.Model(outputs, inputs, "model")
    compiled = openvino.Core().compile_model(model, "CPU", EXACT)
    return [value.copy() for value in compiled(arrays).values()]


PIXELS, WEIGHTS = np.full((1, 4, 1, 1), 255, np.uint8), np.full((1, 4, 1, 1), 127, np.int8)


@pytest.mark.xfail(
    not FEATURES["vnni"], reason="OpenVINO CPU 2026.4 adds products in 16 bits", strict=True
)
def test_large_products_in_openvino() -> None:
    x = ops.parameter([1, 4, 1, 1], np.float32)
    bounds = [ops.constant(np.float32(bound)) for bound in (0, 255, 0, 255)]
    quantised = ops.fake_quantize(x, *bounds, 256)
    scaled = ops.multiply(
        ops.convert(ops.constant(WEIGHTS), np.float32),
        ops.constant(np.ones((1, 1, 1, 1), np.float32)),
    )
    y = ops.convolution(quantised, scaled, [1, 1], [0, 0], [0, 0], [1, 1])
    (got,) = run_openvino([y.output(0)], [x], [PIXELS.astype(np.float32)])
    assert got == 4 * 255 * 127


@pytest.mark.xfail(
    not FEATURES["vnni"], reason="onnxruntime 1.31 adds products in 16 bits", strict=True
)
def test_large_products_in_onnxruntime() -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    products (uint8[1,4] x, int8[4,1] w) => (int32[1,1] y) { y = MatMulInteger(x, w) }""")
    feed = {"x": PIXELS.reshape(1, 4), "w": WEIGHTS.reshape(4, 1)}
    assert OnnxRuntime(model).run(feed)[0] == 4 * 255 * 127


@pytest.mark.xfail(
    reason="onnxruntime 1.31 writes the running mean of BatchNormalization into its input",
    strict=True,
)
def test_running_mean_in_onnxruntime() -> None:
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 19]>
    training (float[2,3,2,2] x, float[3] mean, float[3] var) => (float[3] y)
    <float[3] ones = {1, 1, 1}> {
        o, m, v = BatchNormalization <training_mode = 1> (x, ones, ones, mean, var)
        y = Neg (m) }""")
    feed = {"x": np.ones((2, 3, 2, 2), np.float32), "mean": np.zeros(3, np.float32)}
    OnnxRuntime(model).run(feed | {"var": np.ones(3, np.float32)})
    assert not feed["mean"].any()


@pytest.mark.xfail(
    ONNXRUNTIME < (1, 32),
    reason="onnxruntime 1.31 does not reduce what has no elements along an axis from the end",
    strict=True,
)
def test_reduction_of_nothing_in_onnxruntime() -> None:
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
    reduction (float[2,n,4] x) => (float[2,4] y) <int64[1] axis = {-2}> {
        y = ReduceSum <keepdims = 0> (x, axis) }""")
    assert OnnxRuntime(model).run({"x": np.zeros((2, 0, 4), np.float32)})[0].shape == (2, 4)


@pytest.mark.xfail(
    reason="onnxruntime 1.31 stacks the strings of a Loop's first iteration alone", strict=True
)
def test_stack_of_strings_in_onnxruntime() -> None:
    model = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
    stack (string x, int64 n) => (string[k] y) {
        y = Loop (n, "") <body = b (int64 i, bool c) => (bool d, string z) {
            d = Identity (c) z = Identity (x) }> }""")
    feed = {"x": np.array("a", object), "n": np.array(2)}
    assert OnnxRuntime(model).run(feed)[0].tolist() == ["a", "a"]


@pytest.mark.xfail(
    reason="with one thread, OpenVINO CPU 2026.4 gives other numbers instead of an error",
    strict=True,
)
def test_an_error_with_one_thread_in_openvino() -> None:
    x, sizes = ops.parameter([-1], np.float32), ops.parameter([2], np.int64)
    y = ops.exp(ops.reshape(ops.exp(x), sizes, special_zero=False))
    model = openvino.Model([y.output(0)], [x, sizes], "model")
    config = {**EXACT, "INFERENCE_NUM_THREADS": 1}
    compiled = openvino.Core().compile_model(model, "CPU", config)
    with pytest.raises(RuntimeError):
        compiled([np.ones(5, np.float32), np.array([2, 2])])
