"""Faults of the engines without a quirk; other tests avoid them. A test fails once its fault is
gone.

Those of `LOUD` are errors, which need no quirk: no published model has them.

Some faults are in the kernels for one kind of processor. On others their tests are plain tests.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import openvino
import pytest
from onnx import parser
from openvino import opset13 as ops

from bridge.check.isolation import LostProcessError
from tests.quirks.canaries import Canary, _f32, _filled, _i64
from tests.quirks.test_canaries import compare
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


LOUD: dict[str, Canary] = {
    "a Select of one truth value by itself": Canary(
        "(bool[n] x) => (uint8[n] y) { n = Not (x) u = Cast <to = 2> (n) y = Where (n, u, u) }",
        {"x": np.array([True, False])},
    ),
    "TopK with a k of 0": Canary(
        "(float[2, n] x, int64[1] k) => (float[2, m] y, int64[2, m] i) { "
        "y, i = TopK <sorted = 0> (x, k) }",
        {"x": _f32(2, 3), "k": _i64(0)},
    ),
    "scaled floats of 8 bits beside quantised values": Canary(
        "(float[2, 4] x) => (float[2, 4] y, float[2, 4] z) <float s = {0.5}, uint8 none = {128}> { "
        "h = Cast <to = 17> (x) f = Cast <to = 1> (h) y = Mul (f, s) "
        "q = QuantizeLinear (x, s, none) d = DequantizeLinear (q, s, none) z = Add (d, x) }",
        {"x": _f32(2, 4)},
    ),
    "FakeQuantize along the third axis of open size": Canary(
        """(float[n, m, 2] x) => (float[n, m, 2] y)
        <float[2] s = {0.03, 0.05}, uint8[2] z = {128, 100}> {
          q = QuantizeLinear <axis = 2> (x, s, z) d = DequantizeLinear <axis = 2> (q, s, z)
          y = Add (d, s) }""",
        {"x": _f32(2, 3, 2)},
    ),
    "a product of integers by an empty constant": Canary(
        "(int32[3,n] x) => (int32[0,n] y) <int32[0,3] w = {}> { y = MatMul (w, x) }",
        {"x": np.ones((3, 2), np.int32)},
    ),
    "a matrix of open size times a stack of constants": Canary(
        """(float[n,3] x) => (float[2,n,2] y) {
        stack = Constant <value = float[2,3,2] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}> ()
        y = MatMul (x, stack) }""",
        {"x": _f32(4, 3)},
    ),
    "arithmetic like that of an LSTM's cell with a broadcast state": Canary(
        f"""(float[n,1] x, float[n,1] h, float[1,1] cell) => (float[n,1] y)
        <float[2,4] w = {{{_filled(0.5, 2, 4)}}}, float[4] b = {{0.1, 0.2, 0.3, 0.4}},
         float one = {{1}}> {{
            xh = Concat <axis = 1> (x, h) p = MatMul (xh, w) s = Add (p, b)
            i, c, f, o = Split <axis = 1, num_outputs = 4> (s)
            g = Add (f, one) gi = Sigmoid (i) gc = Tanh (c) gf = Sigmoid (g) go = Sigmoid (o)
            new = Mul (gi, gc) old = Mul (gf, cell) next = Add (new, old)
            t = Tanh (next) y = Mul (t, go) }}""",
        {"x": _f32(2, 1) / 4, "h": _f32(2, 1) / 8, "cell": _f32(1, 1)},
    ),
    "a scaled product by a constant vector": Canary(
        """(float[n, 3, 4] x) => (float[n, 3] y) <float[4] w = {1, 2, 3, 4}, float half = {0.5}> {
        p = MatMul (x, w) y = Mul (p, half) }""",
        {"x": _f32(2, 3, 4)},
    ),
    "a squeezed sum of two ranks and open sizes": Canary(
        """(float[n,m] x, float[m] y) => (float[n,m] z) <int64[1] zero = {0}, int64[1] one = {1}> {
        wide = Unsqueeze (x, one) row = Unsqueeze (y, zero) sum = Add (wide, row)
        z = Squeeze (sum, one) }""",
        {"x": _f32(2, 3), "y": _f32(3)},
    ),
    "a shuffle along an axis of open size": Canary(
        """(float[n, 3, 1, 4] x) => (float[1, 3, n, 4] y)
        <int64[4] grouped = {1, -1, 3, 4}, int64[4] back = {1, 3, -1, 4}> {
        g = Reshape (x, grouped) t = Transpose <perm = [0, 2, 1, 3]> (g) y = Reshape (t, back) }""",
        {"x": _f32(2, 3, 1, 4)},
    ),
    "an empty Broadcast of constants": Canary(
        """(float[2] x, bool[2] b) => (float[m, n] y, float[2] z)
        <float[1] one = {1}, float zero = {0}, float[1, 0] nothing = {}, int64[2] shape = {2, 1},
        int64[1] axis = {0}> {
        z = Neg (x) same = CastLike (one, zero) sum = ReduceSum <keepdims = 0> (same)
        known = Less (zero, sum)
        taken = If (known) <then_branch = t () => (float[1, k] p) { p = Identity (nothing) },
        else_branch = e () => (float[1, l] q) { c = Compress (x, b) q = Unsqueeze (c, axis) }>
        y = Expand (taken, shape) }""",
        {"x": _f32(2), "b": np.array([True, False])},
        ends=True,
    ),
    "LRN over an open number of channels": Canary(
        "(float[n,c,h,w] x) => (float[n,c,h,w] y) { y = LRN <size = 5> (x) }",
        {"x": _f32(1, 5, 2, 2)},
    ),
    "ReduceL2 of integers along computed axes": Canary(
        "(int32[2,3] x, int64[1] axes) => (int32[a,b] y) { y = ReduceL2 (x, axes) }",
        {"x": np.arange(6, dtype=np.int32).reshape(2, 3), "axes": _i64(1)},
    ),
    "GroupedMatMul of computed matrices": Canary(
        """(float[n,4] x, float[n,3] scores, float[3,5,4] w, float[3,4,5] v) => (float[n,4] y) {
            y = com.microsoft.MoE (x, scores, w, , v) }""",
        {
            "x": _f32(2, 4), "scores": np.array([[1, 3, 2], [2, 1, 0]], np.float32),
            "w": _f32(3, 5, 4) / 60, "v": _f32(3, 4, 5) / 60,
        },
    ),
    "a stack behind an axis of size 0": Canary(
        """(float[n,m,3] x) => (float[n,3,m] y) { y = Scan <
          body = b (float[n,m] part) => (float[n,m] same) { same = Neg (part) },
          num_scan_inputs = 1, scan_input_axes = [2], scan_output_axes = [1]> (x) }""",
        {"x": _f32(0, 2, 3)},
        expected=(_f32(0, 3, 2),),
        ends=True,
    ),
    "computed weights of a recurrent layer": Canary(
        f"""(float[2,1,2] x) => (float[2,1,1,3] y)
        <float[3,2] data = {{{_filled(0.1, 3, 2)}}}, int64[1,3,1] places = {{2, 0, 1}},
        float[1,3,3] r = {{{_filled(0.1, 3, 3)}}}> {{
        w = GatherND (data, places) y = RNN <hidden_size = 3> (x, w, r) }}""",
        {"x": _f32(2, 1, 2) / 10},
    ),
    "a recurrent layer with a constant state and an open batch": Canary(
        f"""(float[2,b,2] x) => (float[2,1,p,1] y)
        <float[1,1,2] w = {{{_filled(0.1, 2)}}}, float[1,1,1] r = {{0.5}}, float[1,1,1] h = {{0.5}}>
        {{ y = RNN <hidden_size = 1> (x, w, r, , , h) }}""",
        {"x": _f32(2, 1, 2)},
    ),
}  # fmt: skip
"""Models of ONNX whose IR OpenVINO's CPU plugin does not run."""


@pytest.mark.parametrize("name", LOUD)
@pytest.mark.xfail(raises=(RuntimeError, LostProcessError), strict=True)
def test_of_openvino(name: str, tmp_path: Path) -> None:
    compare(LOUD[name], tmp_path / "model.xml")
