"""Rare forms of operators, each once wrong or refused: OpenVINO computes the IR as onnxruntime the
ONNX, onnxruntime computes what comes back, and for models of IR the other way round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from openvino import opset14 as ops

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

_RNG = np.random.default_rng(44)


def _f32(*shape: int) -> np.ndarray:
    return _RNG.normal(size=shape).astype(np.float32)


def _int(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


_ATTENTION = "(float[N,Q,4] q, float[N,K,4] k, float[N,K,4] v"
_CACHE = ", float[N,2,P,2] past_key, float[N,2,P,2] past_value"
_CROSS = {"q": _f32(1, 2, 4), "k": _f32(1, 5, 4), "v": _f32(1, 5, 4)}
_PAST = {"past_key": _f32(1, 2, 3, 2), "past_value": _f32(1, 2, 3, 2)}
_QUANTISED = """float scale = {0.02}, uint8 zero = {158}, float unit = {0.05}, int8 none = {0}> {
    q = QuantizeLinear (x, unit, none) d = DequantizeLinear (q, unit, none)
    w = DequantizeLinear (stored, scale, zero)"""

ONNX: dict[str, tuple[str, dict[str, np.ndarray]]] = {
    "attention, open width of values": (
        """(float[1,3,2] q, float[1,3,2] k, float[A,B,C] v) => (float[P,Q,R] y) {
            y = Attention <kv_num_heads = 1, q_num_heads = 1> (q, k, v) }""",
        {"q": _f32(1, 3, 2), "k": _f32(1, 3, 2), "v": _f32(1, 3, 3)},
    ),
    "attention, open past": (
        """(float[1,2,3,2] q, float[1,2,3,2] k, float[1,2,3,2] v, float[1,2,P,2] past_key,
            float[1,2,P,2] past_value) => (float[A,B,C,D] y, float[A,B,E,D] key) {
            y, key, value = Attention (q, k, v, , past_key, past_value) }""",
        {name: _f32(1, 2, 3, 2) for name in "qkv"} | _PAST,
    ),
    "resize, axes in another order": (
        """(float[N,1,3,4] x, float[2] s) => (float[A,B,C,D] y) {
            y = Resize <axes = [3, -2], mode = "nearest", nearest_mode = "floor",
                coordinate_transformation_mode = "asymmetric"> (x, , s) }""",
        {"x": _f32(2, 1, 3, 4), "s": np.float32([2, 3])},
    ),
    "resize, negative axes and sizes": (
        """(float[N,1,3,4] x) => (float[A,B,C,D] y) <int64[2] s = {8, 9}> {
            y = Resize <axes = [-1, 2], mode = "cubic"> (x, , , s) }""",
        {"x": _f32(2, 1, 3, 4)},
    ),
    "cross attention in order": (
        f"""{_ATTENTION}) => (float[A,B,C] y) {{
            y = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1> (q, k, v)
        }}""",
        _CROSS,
    ),
    "cross attention in order, with a past": (
        f"""{_ATTENTION}{_CACHE}) => (float[A,B,C] y) {{
            y, key, value = com.microsoft.MultiHeadAttention <num_heads = 2, unidirectional = 1>
                (q, k, v, , , , past_key, past_value) }}""",
        _CROSS | _PAST,
    ),
    "statistics that nobody reads": (
        """(float[N,4] x, float[N,4] k, float[4] g) => (float[N,4] y, float[N,4] z) {
            h, mean, deviation, s = com.microsoft.SkipSimplifiedLayerNormalization (x, k, g)
            y = Relu (h) z = Neg (s) }""",
        {"x": _f32(2, 4), "k": _f32(2, 4), "g": _f32(4)},
    ),
    "a cache that nobody reads": (
        """(float[N,Q,8] x, float[8,20] w) => (float[A,B,C] y) {
            y, cache = com.microsoft.Attention <num_heads = 2, qkv_hidden_sizes = [8, 8, 4]> (x, w)
        }""",
        {"x": _f32(1, 3, 8), "w": _f32(8, 20)},
    ),
    "f64 divided behind a sum": (
        """(double[N,2,K] x) => (double[N,K] y) <int64[1] a = {1}, double two = {2}> {
            r = ReduceSum <keepdims = 0> (x, a) y = Div (r, two) }""",
        {"x": _f32(3, 2, 4).astype(np.float64)},
    ),
    "zero point of transposed weights": (
        f"""(float[1,1,2,2] x) => (float[A,B,C,D] y)
            <uint8[1,1,2,2] stored = {{52, 207, 96, 49}}, {_QUANTISED}
            y = ConvTranspose (d, w) }}""",
        {"x": _f32(1, 1, 2, 2)},
    ),
    "pooling, SAME with a short kernel": (
        """(float[N,1,M] x) => (float[A,B,C] y) {
            y = AveragePool <kernel_shape = [1], strides = [2], auto_pad = "SAME_UPPER"> (x) }""",
        {"x": _f32(1, 1, 8)},
    ),
    **{
        f"{kind} grid of one place along an axis": (
            f"""(float[1,2,3] t) => (float[A,B,C,D] y) <int64[4] s = {{1, 1, {sizes}}}> {{
                y = AffineGrid <align_corners = 1> (t, s) }}""",
            {"t": _f32(1, 2, 3)},
        )
        for kind, sizes in (("wide", "1, 3"), ("high", "3, 1"), ("single", "1, 1"))
    },
    **{
        f"{kind} signal of open last size, {attributes}": (
            f"""(float[A,B,C] x) => (float[P,Q,S] y) <int64 a = {{-2}}, int64 n = {{{length}}}> {{
                y = DFT <{attributes}> (x, n, a) }}""",
            {"x": _f32(2, 5, parts)},
        )
        for kind, parts, length, attributes in (
            ("real", 1, 5, "onesided = 0"),
            ("complex", 2, 5, "onesided = 0"),
            ("real", 1, 7, "onesided = 1"),
            ("complex", 2, 4, "inverse = 1"),
            ("complex", 2, 8, "inverse = 1, onesided = 1"),
        )
    },
    "resize of a region by computed scales": (
        """(float[1,1,4,4] x, float[4] s) => (float[A,B,C,D] y)
            <float[8] roi = {0, 0, 0.2, 0.2, 1, 1, 0.9, 0.9}> {
            y = Resize <coordinate_transformation_mode = "tf_crop_and_resize", mode = "cubic">
                (x, roi, s) }""",
        {"x": _f32(1, 1, 4, 4), "s": np.float32([1, 1, 2, 0.6])},
    ),
    "places in a scalar, in a branch": (
        """(bool k, float x) => (int64[A,B] y) {
            y = If (k) <then_branch = t () => (int64[C,D] a) { a = NonZero (x) },
                else_branch = e () => (int64 b) { b = Size (x) }> }""",
        {"k": np.array(True), "x": np.array(2, np.float32)},
    ),
    **{
        f"{operator} of an open rank": (
            f"""(float[N] x, int64[R] s, float[1,3,4] k, float[4,12] w)
                => (float[A,B,C] y) {{
                q = Reshape (x, s) y = com.microsoft.{operator} <num_heads = 2> {inputs} }}""",
            {"x": _f32(12), "s": _int(1, 3, 4), "k": _f32(1, 3, 4), "w": _f32(4, 12)},
        )
        for operator, inputs in (
            ("MultiHeadAttention", "(q, k, k)"),
            ("Attention", "(q, w)"),
        )
    },
    **{
        f"{operator} beside another rank": (
            f"""(bool k, float[1,1,2] x, int64[1,1,2] i, int64[3] s, int64 n) => (float[A,B,C] y) {{
                low = Constant <value_float = 0.0> () high = Constant <value_float = 2.0> ()
                y = If (k) <then_branch = t () => (float r) {{ r = ReduceMax <keepdims = 0> (x) }},
                    else_branch = e () => (float[] z) {{
                        v = {operator} {inputs} z = Neg (v) }}> }}""",
            {"k": np.array(False), "x": _f32(1, 1, 2), "i": _int(0, 2).reshape(1, 1, 2)}
            | {"s": _int(1, 1, 4), "n": np.array(8)},
        )
        for operator, inputs in (
            ("CenterCropPad", "(x, s)"),
            ("MaxUnpool", "<kernel_shape = [2], strides = [2]> (x, i, s)"),
            ("MelWeightMatrix", "(n, n, n, low, high)"),
        )
    },
    "a Scan of constants over empty rows": (
        """(float[N,0] x) => (float[A,B,C] y) <float[2,2] c = {1, 2, 3, 4}> {
            y = Scan <num_scan_inputs = 1, body = b (float[K] e) => (float[D,E] z) {
                z = Neg (c) }> (x) }""",
        {"x": _f32(2, 0)},
    ),
    **{
        f"the last window of quantised numbers, {attributes}": (
            f"""(uint8[N,C,W] x) => (uint8[A,B,D] y) <float s = {{0.05}}, uint8 z = {{10}}> {{
                y = com.microsoft.QLinearAveragePool <{attributes}, ceil_mode = 1,
                    count_include_pad = 1> (x, s, z, s, z) }}""",
            {"x": np.uint8([[[9, 120, 40, 200, 15, 77]]])},
        )
        for attributes in (
            "kernel_shape = [3], strides = [2]",
            "kernel_shape = [2], strides = [3], pads = [1, 0]",
            "kernel_shape = [2], strides = [3], pads = [0, 1]",
        )
    },
    "groups of a matrix": (
        """(float[N,4] x, float[4] w) => (float[A,B] y) {
            y = GroupNormalization <num_groups = 2, epsilon = 0.01> (x, w, w) }""",
        {"x": _f32(3, 4), "w": _f32(4)},
    ),
    "a captured number through f16, in a Scan": (
        """(float[N] x, float[3,2] m, int64[0] r) => (float[A] y) <float s = {0.5}> {
            y = Scan <num_scan_inputs = 1, body = b (float[K] e) => (float z) {
                h = Cast <to = 10> (x) n = Reshape (h, r) w = Cast <to = 1> (n)
                q = Div (w, s) f = Floor (q) z = Sub (q, f) }> (m) }""",
        {"x": np.float32([3.25]), "m": _f32(3, 2), "r": np.zeros(0, np.int64)},
    ),
    "masks of numbers that an If gives": (
        """(bool k, int64[N] x) => (bool[M] y) {
            n = If (k) <then_branch = t () => (int64[A] a) { a = Neg (x) },
                else_branch = e () => (int64[B] b) { b = Identity (x) }>
            y = Cast <to = 9> (n) }""",
        {"k": np.array(True), "x": _int(3, 0, -2)},
    ),
    "frames of a signal of open last size": (
        """(float[A,B,C] x, float[W] w) => (float[P,Q,S,R] y) <int64 s = {4}> {
            y = STFT <onesided = 0> (x, s, w) }""",
        {"x": _f32(2, 16, 2), "w": _f32(8)},
    ),
}


@pytest.mark.parametrize("name", ONNX)
def test_from_onnx(name: str, tmp_path: Path) -> None:
    text, feed = ONNX[name]
    opset = 17 if "STFT" in text else 23 if "= Attention" in text else 21
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]> g {text}'
    )
    expected = OnnxRuntime(model).run(feed)
    bridge.convert(model, tmp_path / "a.xml")
    engine, boundary = OpenVino(tmp_path / "a.xml"), bridge.Boundary.of(tmp_path / "a.xml")
    results = engine.run_once(engine.compiled.create_infer_request(), boundary, feed)
    assert_close([results[output.name] for output in model.graph.output], expected)
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    assert_close(OnnxRuntime(tmp_path / "b.onnx").run(feed), expected)


def _inverse(shape: list[int], size: int) -> Callable[[], Any]:
    def make() -> Any:
        x = ops.parameter(shape, np.float32, "x")
        return ops.irdft(x, ops.constant(_int(1)), ops.constant(_int(size))), x

    return make


def _pool(kind: str, shape: list[int], kernel: int, stride: int, pad: str, **more: Any) -> Any:
    def make() -> Any:
        x = ops.parameter(shape, np.float32, "x")
        window = [stride], [0], [0], [kernel]
        if kind == "max":
            return ops.max_pool(x, window[0], [1], *window[1:], "ceil", pad).output(0), x
        return ops.avg_pool(x, *window, rounding_type="ceil", auto_pad=pad, **more).output(0), x

    return make


def _recurrent() -> Any:
    x = ops.parameter([1, 3, 4], np.float32, "x")
    numbers = list(np.abs(_RNG.normal(size=12)))
    stored = openvino.op.Constant(openvino.Type.nf4, openvino.Shape([1, 12]), numbers)
    bias = ops.multiply(ops.convert(stored, "f32"), ops.constant(np.float32(0.5)))
    weights = (ops.constant(_f32(1, 12, 4)) for _ in range(2))
    state, length = ops.constant(_f32(1, 1, 4)), ops.constant(np.int32([3]))
    return ops.gru_sequence(x, state, length, *weights, bias, 4, "forward").output(0), x


_SPECTRUM = _f32(2, 5, 2) * np.float32([1, 0])
IR: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    **{
        f"inverse of a spectrum cut to {size}, sizes {shape}": (_inverse(shape, size), _SPECTRUM)
        for size in (2, 4, 7)
        for shape in ([2, 5, 2], [-1, -1, -1])
    },
    **{
        f"average of {size} by {kernel} in steps of {stride}, {pad}, {exclude}, {shape}": (
            _pool("average", shape or [1, 1, size], kernel, stride, pad, exclude_pad=exclude),
            _f32(1, 1, size),
        )
        for size, kernel, stride in ((7, 2, 3), (8, 1, 2), (9, 2, 3))
        for pad in ("same_upper", "same_lower", "explicit")
        for exclude in (False, True)
        for shape in ([], [-1, 1, -1])
    },
    **{
        f"maximum of {size} by {kernel} in steps of {stride}": (
            _pool("max", [-1, 1, -1], kernel, stride, "same_lower"),
            _f32(1, 1, size),
        )
        for size, kernel, stride in ((7, 2, 3), (9, 2, 3))
    },
    "bias of nf4": (_recurrent, _f32(1, 3, 4)),
}


@pytest.mark.parametrize("name", IR)
def test_from_ir(name: str, tmp_path: Path) -> None:
    make, value = IR[name]
    output, x = make()
    made = output.output(0) if hasattr(output, "output") else output
    openvino.save_model(openvino.Model([made], [x], "m"), tmp_path / "a.xml", False)
    expected = OpenVino(tmp_path / "a.xml").run([value])
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx")
    runtime = OnnxRuntime(tmp_path / "b.onnx")
    assert_close(runtime.run({runtime.session.get_inputs()[0].name: value}), expected)
    bridge.convert(tmp_path / "b.onnx", tmp_path / "c.xml")
    assert_close(OpenVino(tmp_path / "c.xml").run([value]), expected)


def test_one_cache_has_no_heads_of_two_sizes(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        g (float[N,Q,8] x, float[8,20] w) => (float[A,B,C] y, float[D,E,F,G,H] cache) {
            y, cache = com.microsoft.Attention <num_heads = 2, qkv_hidden_sizes = [8, 8, 4]> (x, w)
        }"""
    )
    with pytest.raises(bridge.UnsupportedError, match="its output 1 is"):
        bridge.convert(model, tmp_path / "a.xml")
