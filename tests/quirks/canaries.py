"""One model for each quirk. It shows the engine's fault if that quirk alone is left out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tests.support.processor import FEATURES

Feed = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Canary:
    """A model and the inputs that show the fault.

    `model` is a graph in ONNX's text syntax. It runs with `before`, if that is given, and then with
    `feed`. The outputs for `feed` are compared with onnxruntime's, or with `expected` if
    onnxruntime cannot run the model. `hidden_by` are quirks that hide the fault and are left out,
    too. `seen` says whether this processor has the fault, `on` names the processors that have it. A
    canary that is `loud` shows an error instead of wrong numbers. One with `ends` may crash, so it
    runs in a process of its own. `stateful` makes variables of inputs and outputs with the names of
    states, `beams` reorders them by an input.
    """

    model: str
    feed: Feed
    before: Feed | None = None
    expected: tuple[np.ndarray, ...] | None = None
    hidden_by: tuple[str, ...] = ()
    opset: int = 21
    seen: bool = True
    on: str = ""
    loud: bool = False
    ends: bool = False
    stateful: bool = False
    beams: bool = False


def quirk_of(path: str) -> str:
    """The path of a canary's quirk."""
    return path.partition(",")[0]


def _f32(*shape: int) -> np.ndarray:
    """Different numbers of this shape."""
    return np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)


def _i64(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def _filled(number: float, *shape: int) -> str:
    """The content of a constant in text syntax: this number repeated."""
    return ", ".join([str(number)] * math.prod(shape))


def gru_cell(rest: str, bias: str, state: str) -> str:
    """Arithmetic like that of a GRU's cell."""
    return f"""(float[2,2] x, float[2,2] h) => (float[2,2] y)
        <float[4,4] w = {{{_filled(0.5, 4, 4)}}}, float[2,4] v = {{{_filled(0.25, 2, 4)}}},
         float[4] a = {{0.1, 0.2, 0.3, 0.4}}, float[1,4] b = {{0.1, 0.2, 0.3, 0.4}},
         float one = {{1}}, float two = {{2}}> {{
            xh = Concat <axis = 1> (x, h) p = Gemm <transB = 1> (xh, w, {bias})
            s = Sigmoid (p) r, z = Split <axis = 1, num_outputs = 2> (s)
            rh = Mul (r, h) xr = Concat <axis = 1> (x, rh) q = Gemm <transB = 1> (xr, v)
            t = Tanh (q) {rest} new = Mul (d, t) old = Mul (z, {state}) y = Add (new, old) }}"""


_TIES = np.arange(-140, 140, dtype=np.float32) + np.float32(0.5)
"""Numbers halfway between two integers."""


def _attention(x: np.ndarray) -> np.ndarray:
    """Attention of words to themselves, whose scores are halved."""
    shares = np.exp(x @ x.swapaxes(-1, -2) / 2)
    return shares / shares.sum(-1, keepdims=True) @ x


_WORDS = np.sin(np.arange(2 * 1500 * 16, dtype=np.float32)).reshape(2, 1, 1500, 16) / 4

CANARIES: dict[str, Canary] = {
    "memory_behind": Canary(
        "(float[k] w, int64[t] trips) => (float[t, b, a] y, float[t] z) "
        "<int64[2] row = {1, -1}, int64[2] column = {-1, 1}, int64 zero = {0}, int64 one = {1}> { "
        "y, z = Scan <num_scan_inputs = 1, body = a (int64 n) => (float[h, g] y0, float z0) { "
        "s = Loop (n, , w) <body = b (int64 i, bool c, float[m] p) => (bool d, float[m] q) "
        "{ d = Identity (c) q = Add (p, p) }> v = Reshape (s, row) u = Reshape (s, column) "
        "y0 = Mul (v, u) r = Range (zero, n, one) f = Cast <to = 1> (r) e = Neg (f) "
        "z0 = ReduceSum <keepdims = 0> (e) }> (trips) }",
        {"w": _f32(2), "trips": _i64(1, 4, 1, 4, 4)},
    ),
    "copied_types": Canary(
        """(uint2[7,1] x) => (uint8[2,7,1] y) <int64 trips = {2}> {
        y = Loop (trips, "") <body = b (int64 i, bool c) => (bool d, uint8[7,1] part) {
            d = Identity (c) part = Cast <to = 2> (x) }> }""",
        {"x": (np.arange(7) % 4).astype(ml_dtypes.uint2).reshape(7, 1)},
        expected=(np.array([np.arange(7).reshape(7, 1) % 4] * 2, np.uint8),),
        opset=25,
        ends=True,
    ),
    "channels_in_kernel, of a size": Canary(
        "(float[1,3,h,w] x) => (float[a,b] y) <int64[1] two = {2}, int64[1] four = {4}, "
        "float[1] side = {96}, float[1,1] one = {1}> { s = Shape (x) t = Slice (s, two, four) "
        "f = Cast <to = 1> (t) m = ReduceMax <keepdims = 1> (f) r = Div (side, m) p = Mul (f, r) "
        "i = Cast <to = 7> (p) y = Expand (one, i) }",
        {"x": np.zeros((1, 3, 64, 43), np.float32)},
    ),
    "channels_in_kernel, quantised: some negative": Canary(
        "(float[n, 3] x) => (float[n, 3] y) <float[3] scale = {-1, 2, 3}, float step = {0.5}, "
        "int8 zero = {0}> { scaled = Mul (x, scale) q = QuantizeLinear (scaled, step, zero) "
        "d = DequantizeLinear (q, step, zero) y = Add (d, x) }",
        {"x": _f32(2, 3)},
    ),
    "scalar_of_product": Canary(
        "(float[1, 2] x) => (float y) <float[2, 1] w = {1.125, -0.25}, int64[0] scalar = {}> "
        "{ p = MatMul (x, w) y = Reshape (p, scalar) }",
        {"x": _f32(1, 2)},
        loud=True,
        ends=True,
    ),
    "known_empty_tensor": Canary(
        "(float[a, 1, 1, 3] x) => (bool[a, 0, 3] y) <float[0, 1, 3] nothing = {}, "
        "int64[1] axis = {-2}> { l = Less (nothing, x) y = Squeeze (l, axis) }",
        {"x": _f32(2, 1, 1, 3)},
    ),
    "computed_one_hot": Canary(
        "(int64[4] x) => (float[4, 3] y) <int64 depth = {3}, float[2] values = {0, 1}> "
        "{ y = OneHot (x, depth, values) }",
        {"x": _i64(0, -1, 2, -3)},
        seen=False,
        on="OpenVINO before 2025.4",
        loud=True,
    ),
    "gather_from_the_end": Canary(
        "(float[3, 2] x, int64[n, 2] i, int64[m, 2] j) => (float[n] y, float[m, 2] z) "
        "{ y = GatherND (x, i) z = GatherElements <axis = 0> (x, j) }",
        {"x": _f32(3, 2), "i": _i64(-3, -1, 0, 1).reshape(2, 2), "j": _i64(-1, 2).reshape(1, 2)},
        seen=False,
        on="OpenVINO before 2025.3",
    ),
    "gather_from_one_batch": Canary(
        "(float[1, 1, 16] q, float[1, 1, 4096, 16] p, int32[1] last) => (float[1, 1, 16] y, "
        "float[1, 1, 4096, 16] k, float[1, 1, 4096, 16] v) <int32 total = {4096}> { y, k, v = "
        "com.microsoft.GroupQueryAttention <num_heads = 1, kv_num_heads = 1> "
        "(q, q, q, p, p, last, total) }",
        {
            "q": _f32(1, 1, 16) / 16, "p": _f32(1, 1, 4096, 16) / 65536,
            "last": np.array([2], np.int32),
        },
        ends=True,
    ),
    "cast_to_bool": Canary(
        "(float[n] x) => (bool[n] y) { y = Cast <to = 9> (x) }",
        {"x": np.array([np.nan, 0, -2, np.inf], np.float32)},
    ),
    "kernel_of_lower_rank, of an Expand": Canary(
        "(float[k] u, float[a, b, 1, d, 1, f] x, int64[7] s) => "
        "(float[k] y, float[g, a, b, h, d, i, f] z) { y = Mul (u, u) z = Expand (x, s) }",
        {"u": _f32(3), "x": _f32(2, 3, 1, 2, 1, 2), "s": _i64(3, 1, 1, 3, 1, 2, 2)},
    ),
    "kernel_of_lower_rank": Canary(
        "(float[k] u, float[a, b, c, d, e, f, g] x, float[g] w) => "
        "(float[k] y, float[a, b, c, d, e, f, g] z, float[a, b, c, d, e, f, g] v) "
        "{ y = Exp (u) z = Exp (x) v = Add (x, w) }",
        {"u": _f32(3), "x": _f32(2, 3, 1, 2, 1, 2, 3) / 99, "w": _f32(3)},
    ),
    "exchanged_operands": Canary(
        "(float[n] x) => (float[n] y, float[n] z) <float one = {1}> "
        "{ y = Max (x, one) z = Min (x, one) }",
        {"x": np.array([np.nan, 0, -2, np.inf], np.float32)},
    ),
    "integers_in_f32, selected": Canary(
        "(float[n] s, int64[n] x, int64[n] z) => (int64[n] y) <float half = {0.5}> "
        "{ c = Less (s, half) y = Where (c, x, z) }",
        {
            "s": np.array([0, 1, 0, 1], np.float32),
            "x": _i64(16777217, -16777217, 987654321, 5),
            "z": _i64(33554433, 987654321, 7, -2147483646),
        },
    ),
    "integers_in_f32, limits of a Slice": Canary(
        "(float[n] x, int64[one] s) => (float[m] y) <int64[1] o = {0}, int64 z = {0}, "
        "int64 low = {-9223372036854775807}, int64 high = {9223372036854775807}> "
        "{ i = Gather (s, o) c = Less (i, z) e = Where (c, low, high) y = Slice (x, o, e, o, i) }",
        {"x": np.ones(4, np.float32), "s": _i64(1)},
    ),
    "integers_in_f32": Canary(
        "(int64[n] x) => (int64[n] y) <int64 buckets = {1009}> { y = Mod (x, buckets) }",
        {"x": _i64(16777219, -16777217, 2147483646, -2147483647, 5, -5, 0, 1008)},
    ),
    "integers_in_f32, of a quotient": Canary(
        "(int32[n] x, int32[n] d) => (int32[n] y) { y = Div (x, d) }",
        {
            "x": np.array([16777219, -33554433, 2147483646, -2147483647, 7, -7], np.int32),
            "d": np.array([5, 16777217, -13, 9, 16777217, 2], np.int32),
        },
    ),
    "integers_in_f32, of a remainder with the sign of the dividend": Canary(
        "(int64[n] x, int64[n] d) => (int64[n] y) { y = Mod <fmod = 1> (x, d) }",
        {"x": _i64(16777219, -16777217, 2147483646, -2147483647), "d": _i64(-5, 7, 1009, -3)},
    ),
    "integers_in_f32, of what is negative": Canary(
        "(int32[n] x) => (int32[n] y) { y = Relu (x) }",
        {"x": np.array([16777217, -16777217, 2147483645], np.int32)},
    ),
    "integers_in_f32, of slopes": Canary(
        "(int32[n] x) => (int32[n] y) <int32[1] slope = {2}> { y = PRelu (x, slope) }",
        {"x": np.array([16777217, -16777217, 2147483645], np.int32)},
        expected=(np.array([16777217, -33554434, 2147483645], np.int32),),
    ),
    "integers_in_f32, of sums": Canary(
        "(int64[n,m] x) => (int64[n] y, int64[n] z) <int64[1] axis = {1}> { "
        "y = ReduceSum <keepdims = 0> (x, axis) z = ReduceL1 <keepdims = 0> (x, axis) }",
        {"x": _i64(16777217, 1, -16777219, 2).reshape(2, 2)},
    ),
    "integers_in_f32, of products": Canary(
        "(int64[n,3] x, int32[n,3] z) => (int64[n,2] y, int32[n,n] w) "
        "<int64[3,2] by = {1, 70, -3, 0, 5, 1}> "
        "{ y = MatMul (x, by) t = Transpose <perm = [1, 0]> (z) w = MatMul (z, t) }",
        {
            "x": _i64(16777217, 1, -16777219, 2, 30000, -1).reshape(2, 3),
            "z": np.array([[30001, 3, -17000], [29999, -8191, 2]], np.int32),
        },
    ),
    "integers_in_f32, of maxima": Canary(
        "(int32[n,m] x) => (int32[n] y, int32[n,1] z) <int64[1] axis = {1}> { "
        "y = ReduceMax <keepdims = 0> (x, axis) z = ReduceMin (x, axis) }",
        {"x": np.array([[16777217, 16777216], [-16777219, -16777217]], np.int32)},
    ),
    "integers_in_f32, of comparisons": Canary(
        """(int64[n] x, int64[n] z) => (bool[n] a, bool[n] b, bool[n] c, bool[n] d, bool[n] e) {
          a = Equal (x, z) b = Less (x, z) c = LessOrEqual (x, z) d = Greater (x, z)
          e = GreaterOrEqual (x, z) }""",
        {
            "x": _i64(16777217, 16777216, -16777217, 2147483647, -2147483648, -5, 16777216),
            "z": _i64(16777216, 16777217, -16777216, -2147483648, 2147483647, 7, 16777216),
        },
    ),
    "rounded_remainder": Canary(
        "(float[n] x, float[n] d) => (float[n] y, float[n] z) <float k = {0.3}> "
        "{ y = Mod <fmod = 1> (x, d) z = Mod <fmod = 1> (x, k) }",
        {
            "x": np.array([7.25, -16777216, 1e10, math.inf, -0.5, 1e12, 3], np.float32),
            "d": np.array([math.inf, 7.25, 3, 2, -math.inf, 7e11, math.nan], np.float32),
        },
    ),
    "unsigned_as_signed": Canary(
        "(uint32[n] x, uint32[n] d) => (uint32[n] a, uint32[n] b, uint32[n] c, uint32[n] e, "
        "float[n] f, bool[n] g, bool[n] h, uint32[n] i, uint32[n] j) {"
        'a = BitShift <direction = "RIGHT"> (x, d) b = Div (x, d) c = Mod (x, d) e = Max (x, d) '
        "f = Cast <to = 1> (x) g = Less (x, d) h = Equal (x, d) i = Min (x, d, x) "
        "j = Where (g, x, d) }",
        {
            "x": np.array([4294967295, 3000000001, 2147483648, 7, 2596069104], np.uint32),
            "d": np.array([1, 7, 31, 9, 10], np.uint32),
        },
    ),
    "unsigned_as_signed, of a float": Canary(
        "(float[n] x) => (uint32[n] y) { y = Cast <to = 12> (x) }",
        {"x": np.array([3e9, 4294967040, 2147483648, 7.9, 65535.5], np.float32)},
    ),
    "unsigned_as_signed, extremes": Canary(
        "(uint32[n] x) => (uint32[2] y, int64[2] i) <int64[1] k = {2}> { y, i = TopK (x, k) }",
        {"x": np.array([5, 4294967295, 3000000001, 7, 2596069104], np.uint32)},
        expected=(np.array([4294967295, 3000000001], np.uint32), np.array([1, 2])),
    ),
    "constant_beyond_32_bits": Canary(
        "(uint32[n] x) => (uint32[2] y, uint32[n] z) <uint32[2] c = {2596069104, 3}, "
        "uint32 k = {2596069104}> { y = Identity (c) z = Add (x, k) }",
        {"x": np.array([1, 7, 4000000000], np.uint32)},
    ),
    "constant_beyond_32_bits, of i64": Canary(
        "(int64[n] t) => (int64[n] y) <int64 start = {1700000000000}> { y = Sub (t, start) }",
        {"t": _i64(1700000000005, 1699999999990)},
    ),
    "power_of_integers": Canary(
        "(int64[n] x) => (int64[n] y) <int64 e = {3}> { y = Pow (x, e) }",
        {"x": _i64(1001, -3, 1289)},
    ),
    "power_of_integers, by a computed exponent": Canary(
        "(int64[n] x, int64[n] e) => (int64[n] y) { y = Pow (x, e) }",
        {
            "x": _i64(4097, -3, 1289, 46337, 1, -1, -1, 0, 7),
            "e": _i64(2, 19, 3, 2, 99, 98, 77, 70, 0),
        },
    ),
    "rounded_quotient": Canary(
        "(float[n] x) => (uint8[n] y) <float s = {0.3}, uint8 z = {128}> "
        "{ y = QuantizeLinear (x, s, z) }",
        {"x": _TIES * np.float32(0.3)},
    ),
    "rounded_quotient, by a scale that is given": Canary(
        "(float[2, 280] x, float[2] s) => (int16[2, 280] y) <int16[2] z = {0, -9}> "
        "{ y = QuantizeLinear <axis = 0> (x, s, z) }",
        {
            "x": np.stack([_TIES, 100 * _TIES]) * np.float32([[0.3], [0.007]]),
            "s": np.float32([0.3, 0.007]),
        },
    ),
    "rounded_quotient, a zero point": Canary(
        "(float[280] x) => (uint8[280] y, float s, uint8 z) "
        "{ y, s, z = DynamicQuantizeLinear (x) }",
        {"x": np.clip(_TIES, -127.5, 127.5) * np.float32(0.3)},
    ),
    "rounded_quotient, a scale": Canary(
        "(float[280] x) => (uint8[280] y, float s, uint8 z) "
        "{ y, s, z = DynamicQuantizeLinear (x) }",
        {"x": np.clip(_TIES, -127.5, 127.5) * np.float32(0.1)},
    ),
    "broadcast_into_arithmetic": Canary(
        "(int64[1] s, float[1] x) => (float[n] y) <float[1] two = {2}> "
        "{ e = Expand (two, s) y = Sub (x, e) }",
        {"s": _i64(0), "x": _f32(1)},
    ),
    "broadcast_into_arithmetic, of open size": Canary(
        "(int64[1] s, float[n] x) => (float[m] y) <float[1] two = {2}> "
        "{ e = Expand (two, s) y = Add (e, x) }",
        {"s": _i64(0), "x": _f32(1)},
    ),
    **{
        f"moved_dequantisation, of {operator}": Canary(
            f"""(float[1, 4, 2] x, float[4] w) => (float[1, 4, 2] y)
            <float s = {{0.03}}, uint8 z = {{128}}> {{
              q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)
              y = {operator} <{attributes}epsilon = 0.1> (d, w, w) }}""",
            {"x": _f32(1, 4, 2), "w": _f32(4)},
        )
        for operator, attributes in (
            ("GroupNormalization", "num_groups = 2, "),
            ("InstanceNormalization", ""),
        )
    },
    "moved_dequantisation, by a computed zero point": Canary(
        "(float[4] x, float s, int8 z) => (float[4] y) <float k = {0.1}, int8 none = {-1}> "
        "{ q = QuantizeLinear (x, k, none) y = DequantizeLinear (q, s, z) }",
        {"x": _f32(4), "s": np.array(0.1, np.float32), "z": np.array(-1, np.int8)},
    ),
    "zeros_of_hard_sigmoid": Canary(
        "(float[n] x) => (float[n] y) { y = HardSigmoid <alpha = 0.1, beta = 0.0> (x) }",
        {"x": np.float32([-3, 1, 4])},
    ),
    "scale_of_product": Canary(
        """(float[n, 2, h, w] x) => (float[n, 2, h, w] y, float[n, 2, h, w] z)
        <int8[2, 2, 1, 1] k = {90, -20, 40, 70}, float s = {0.03}, int8 o = {0}> {
          q = QuantizeLinear (x, s, o) d = DequantizeLinear (q, s, o)
          f = DequantizeLinear (k, s, o) y = Conv (d, f) z = Mul (y, s) }""",
        {"x": _f32(1, 2, 3, 3)},
    ),
    "scale_of_product, of a matrix": Canary(
        """(float[n, 2] x, float[2, 3] k) => (float[n, 3] y)
        <float s = {0.03}, int8 o = {0}> {
          q = QuantizeLinear (x, s, o) d = DequantizeLinear (q, s, o)
          r = QuantizeLinear (k, s, o) e = DequantizeLinear (r, s, o)
          p = MatMul (d, e) t = ReduceMax <keepdims = 1> (p) y = Sub (p, t) }""",
        {"x": _f32(2, 2), "k": _f32(2, 3)},
    ),
    "unscaled_weights, zero point": Canary(
        """(float[1,1,2,2] x) => (float[1,1,3,3] y)
          <uint8[1,1,2,2] stored = {52, 207, 96, 49}, float scale = {0.01}, uint8 zero = {158},
          float unit = {0.05}, int8 none = {0}> {
            q = QuantizeLinear (x, unit, none) d = DequantizeLinear (q, unit, none)
            w = DequantizeLinear (stored, scale, zero)
            y = ConvTranspose (d, w) }""",
        {"x": _f32(1, 1, 2, 2)},
    ),
    "unscaled_weights": Canary(
        """(float[n, 1, 2] x) => (float[n, 1, 1, 1] y)
        <int8[1, 3, 2] w = {1, 2, 3, -4, 5, 6}, int8[1, 3, 1] r = {7, -8, 9}, float s = {0.1},
        int8 z = {0}> {
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)
        u = DequantizeLinear (w, s, z) v = DequantizeLinear (r, s, z)
        y = GRU <hidden_size = 1> (d, u, v) }""",
        {"x": _f32(2, 1, 2)},
    ),
    "unique_parts": Canary(
        "(float[n] x) => (float[u] y, int64[n] i) { y, f, i = Unique (x) }",
        {"x": _f32(0)},
        before={"x": _f32(3)},
    ),
    "unique_parts, in the first inference": Canary(
        "(float[n, 3] x) => (float[n, u] y, int64[u] i, int64[3] j, int64[u] c) { "
        "y, i, j, c = Unique <axis = 1> (x) }",
        {"x": _f32(0, 3)},
        loud=True,
    ),
    "unique_parts, along an axis": Canary(
        "(float[2, n] x) => (float[2, u] y) { y = Unique <axis = -1> (x) }",
        {"x": _f32(2, 0)},
        before={"x": _f32(2, 2)},
    ),
    "reduction_over_empty_axis": Canary(
        "(float[n, 2] x, int64[m] i) => (float[2] y, int64[1] z) <int64[1] axis = {0}> "
        "{ y = ReduceSum <keepdims = 0> (x, axis) z = ReduceProd (i) }",
        {"x": _f32(0, 2), "i": _i64()},
        before={"x": _f32(3, 2), "i": _i64(2, 3)},
        seen=False,
        on="OpenVINO before 2024.6",
    ),
    "copied_shapes": Canary(
        "(float[n] x, float[n, m] w, int64 trips) => (float[k] y, float[l, m] z) "
        "{ y, z = Loop (trips, , x, w) <body = b (int64 i, bool c, float[p] s, float[q, m] t) "
        "=> (bool d, float[o] u, float[r, m] v) { d = Identity (c) u = Concat <axis = 0> (s, x) "
        "v = Concat <axis = 0> (w, t) }> }",
        {"x": _f32(0), "w": _f32(0, 1), "trips": np.array(2)},
        before={"x": _f32(2), "w": _f32(2, 1), "trips": np.array(2)},
        seen=False,
        on="OpenVINO before 2025.3",
        loud=True,
    ),
    "states_without_iteration": Canary(
        "(float[2] x, int64 trips) => (float[2] y) { y = Loop (trips, , x) "
        "<body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) "
        "{ d = Identity (c) t = Neg (s) }> }",
        {"x": _f32(2), "trips": np.array(0)},
        before={"x": _f32(2), "trips": np.array(1)},
        seen=False,
        on="OpenVINO before 2026.4",
    ),
    "branch_of_equal_shape": Canary(
        "(float[n] x, bool c) => (float[n] y) { y = If (c) <then_branch = t () => (float[n] p) "
        "{ p = Exp (x) }, else_branch = e () => (float[n] q) { q = Neg (x) }> }",
        {"x": _f32(3), "c": np.array(False)},
        before={"x": _f32(3), "c": np.array(True)},
        seen=False,
        on="OpenVINO before 2026.2",
    ),
    "empty_range": Canary(
        "(int64 start, int64 end, int64 step) => (int64[n] y) { y = Range (start, end, step) }",
        {
            "start": np.array(0, np.int64),
            "end": np.array(5, np.int64),
            "step": np.array(-1, np.int64),
        },
    ),
    "product_over_empty_axis": Canary(
        "(float[2,n] x, float[64,m] z) => (float[2,3] y, float[64,64] a) "
        "<float[0,3] w = {}, float[0,64] v = {}> "
        "{ p = MatMul (x, w) y = Exp (p) a = MatMul (z, v) }",
        {"x": _f32(2, 0), "z": _f32(64, 0)},
        ends=True,
    ),
    "axes_of_interpolation": Canary(
        """(float[2,3,4,4] x) => (float[2,6,4,4] y) {
        none = Constant <value = float[0] {}> ()
        sizes = Constant <value_ints = [2, 6, 4, 4]> ()
        y = Resize <mode = "cubic"> (x, none, none, sizes) }""",
        {"x": _f32(2, 3, 4, 4)},
    ),
    "strides_behind_pads": Canary(
        "(float[1, 2, 3, 4] x) => (float[1, 1, 3, 3] y) <float[1, 2, 1, 1] w = {1, 2}> "
        "{ r = Relu (x) y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (r, w) }",
        {"x": _f32(1, 2, 3, 4)},
    ),
    "attention_over_queries": Canary(
        "(float[1, 4, 4, 8] q, float[1, 4, 8, 5] k, float[1, 4, 5, 8] v, float[8] b) => "
        "(float[1, 4, 4, 8] y) <float c = {0.375}> { p = Add (q, b) s = MatMul (p, k) "
        "m = Mul (s, c) w = Softmax (m) a = MatMul (w, v) "
        "y = Transpose <perm = [0, 2, 1, 3]> (a) }",
        {
            "q": _f32(1, 4, 4, 8) / 128, "k": _f32(1, 4, 8, 5) / 128, "v": _f32(1, 4, 5, 8),
            "b": _f32(8) / 8,
        },
    ),
    "cell_of_other_operands": Canary(
        gru_cell("d = Sub (one, z)", "a", "h"), {"x": _f32(2, 2) / 4, "h": _f32(2, 2) / 8},
        loud=True,
    ),
    "cell_of_other_operands, another number": Canary(
        gru_cell("d = Sub (two, z)", "b", "h"), {"x": _f32(2, 2) / 4, "h": _f32(2, 2) / 8}
    ),
    "cell_of_other_operands, another state": Canary(
        gru_cell("d = Sub (one, z)", "b", "x"), {"x": _f32(2, 2) / 4, "h": _f32(2, 2) / 8}
    ),
    "channels_in_kernel,normalized_reduction": Canary(
        """(float[2, 4, 3] x) => (float[2, 4, 1] y) <int64[1] last = {-1},
        float[4] w = {1, 2, 3, 4}, float[4] b = {5, 6, 7, 8}, float[4] m = {0, 1, 0, 1},
        float[4] v = {1, 4, 1, 4}> {
        r = ReduceMin (x, last) y = BatchNormalization (r, w, b, m, v) }""",
        {"x": _f32(2, 4, 3)},
        seen=not FEATURES["avx512"],
        on="processors without AVX-512",
    ),
    "rearranged_views,negative_axis": Canary(
        """(float[2, 4, 1, 3] x) => (float[2, 4, 1, 3] y)
        <int64[5] s = {2, 4, 1, 1, 3}, int64[1] axis = {-3}> {
        r = Reshape (x, s) y = ReduceL2 <keepdims = 0> (r, axis) }""",
        {"x": _f32(2, 4, 1, 3)},
    ),
    "activation_of_integers": Canary(
        "(int32[n] x) => (int32[n] y) <int32 a = {3}, int32 b = {0}, int32 c = {6}> "
        "{ s = Add (x, a) r = Max (s, b) l = Min (r, c) y = Mul (x, l) }",
        {"x": np.array([1, 2, 5, -3, 7], np.int32)},
    ),
    "rearranged_views,part_of_vector": Canary(
        "(float[2] x) => (float y) <float[1] one = {1}, int64 i = {1}> "
        "{ a, b = Split <num_outputs = 2> (x) c = Concat <axis = 0> (one, b) y = Gather (c, i) }",
        {"x": _f32(2)},
    ),
    "rearranged_views,directions": Canary(
        "(float[t,b,1] x) => (float[t,1,b,2] y, float[t,1,b,2] z) "
        "<float[1,2,1] w = {0.5, -1}, float[1,2,1] v = {1, 0.3}, "
        "float[1,2,2] r = {0.1, 0.7, -0.4, 0.2}, float[1,2,2] s = {0.3, -0.2, 0.9, 0.5}> "
        "{ y = RNN <hidden_size = 2> (x, w, r) "
        'z = RNN <hidden_size = 2, direction = "reverse"> (x, v, s) }',
        {"x": _f32(3, 2, 1) / 9},
    ),
    "rearranged_views,rows_of_a_new_axis": Canary(
        """(float[n, m] x) => (float[n, 2, m] y) <int64[1] axis = {1}, int64[2] rows = {0, 0}> {
        u = Unsqueeze (x, axis) y = Gather <axis = 1> (u, rows) }""",
        {"x": _f32(4, 2)},
    ),
    "rearranged_views,reduction": Canary(
        """(float[1, 4, 2, 2] x) => (float[2, 1] y) <int64[2] axes = {1, 3}, int64[2] s = {2, 1}> {
        r = ReduceMax <keepdims = 0> (x, axes) y = Reshape (r, s) }""",
        {"x": _f32(1, 4, 2, 2)},
    ),
    "rearranged_views,reduction_of_unsqueezed": Canary(
        """(float[3, 4] x) => (float[1, 4, 1] y) <int64[1] last = {2}, int64[1] first = {0}> {
        u = Unsqueeze (x, last) y = ReduceSum (u, first) }""",
        {"x": _f32(3, 4)},
    ),
    "rearranged_views,reduction_of_transposed": Canary(
        """(float[n, 4, 1, 3] x) => (float[1, 4, 3] y) <int64[1] axis = {2}> {
        t = Transpose <perm = [2, 1, 0, 3]> (x) y = ReduceMax <keepdims = 0> (t, axis) }""",
        {"x": _f32(2, 4, 1, 3)},
    ),
    "rearranged_views,slice": Canary(
        """(float[4] x) => (float[1] y) {
        start = Constant <value_ints = [0]> ()
        end = Constant <value_ints = [2]> ()
        cut = Slice (x, start, end)
        last = Constant <value_ints = [-1]> ()
        y = GatherElements (cut, last) }""",
        {"x": _f32(4)},
    ),
    "converted_input": Canary(
        "(int32[n] x) => (int32[n] y) { y = Cast <to = 6> (x) }",
        {"x": np.arange(2, dtype=np.int32)},
        before={"x": np.arange(40, dtype=np.int32)},
        ends=True,
    ),
    "converted_input, as it is": Canary(
        "(int8[n] x) => (int8[n] y) { y = Identity (x) }",
        {"x": np.arange(2, dtype=np.int8)},
        before={"x": np.arange(40, dtype=np.int8)},
        ends=True,
    ),
    "computed_axes, of a Slice": Canary(
        """(float[2,3] x, int64[1] axes) => (float[a,b] y) {
        start = Constant <value_ints = [0]> ()
        end = Constant <value_ints = [1]> ()
        y = Slice (x, start, end, axes) }""",
        {"x": _f32(2, 3), "axes": _i64(1)},
        ends=True,
        loud=True,
    ),
    "tile_of_computed_repeats": Canary(
        "(float[2,3,4,5] x, int64[4] repeats) => (float[a,b,c,d] y) { y = Tile (x, repeats) }",
        {"x": _f32(2, 3, 4, 5), "repeats": _i64(7, 6, 4, 2)},
    ),
    "value_of_pad": Canary(
        """(float[2] x, float v) => (float[4] y) {
        pads = Constant <value_ints = [1, 1]> ()
        y = Pad (x, pads, v) }""",
        {"x": _f32(2), "v": np.array(7, np.float32)},
    ),
    "value_of_pad, of 25 bits": Canary(
        """(int32[2] x) => (int32[4] y) {
        pads = Constant <value_ints = [1, 1]> ()
        v = Constant <value = int32 {16777217}> ()
        y = Pad (x, pads, v) }""",
        {"x": np.array([1, 2], np.int32)},
    ),
    "padding_of_unknown_size": Canary(
        """(float[1,1,n] x) => (float[1,1,n] y, int64[1,1,n] places) {
        y, places = MaxPool <kernel_shape = [2], auto_pad = "SAME_LOWER"> (x) }""",
        {"x": _f32(1, 1, 4)},
    ),
    "bias_of_lrn": Canary(
        "(float[1,3,2,2] x) => (float[1,3,2,2] y) { y = LRN <size = 3, bias = 1.5> (x) }",
        {"x": _f32(1, 3, 2, 2)},
    ),
    "compared_infinity, of a maximum": Canary(
        """(float[2] x) => (bool[1] y) <float bound = {-inf}> {
        most = ReduceMax (x)
        y = Equal (most, bound) }""",
        {"x": np.full(2, -np.inf, np.float32)},
    ),
    "infinite_f64": Canary(
        """(double[3] x, bool[3] c) => (float[3] y) <double bound = {-inf}> {
        chosen = Where (c, x, bound)
        y = Cast <to = 1> (chosen) }""",
        {"x": np.arange(3.0), "c": np.array([True, False, True])},
    ),
    "infinite_f64, cast": Canary(
        """(double[3] x) => (float[3] y) <float bound = {inf}> {
        wide = Cast <to = 11> (bound)
        added = Add (x, wide)
        y = Cast <to = 1> (added) }""",
        {"x": np.arange(3.0)},
    ),
    "compared_infinity, in bf16": Canary(
        """(float[1] x) => (bool[1] y) <float wide = {-inf}> {
        bound = Cast <to = 16> (wide)
        narrow = Cast <to = 16> (x)
        y = Equal (narrow, bound) }""",
        {"x": np.full(1, -np.inf, np.float32)},
        expected=(np.array([True]),),
        seen=not FEATURES["bf16"],
        on="processors without instructions for bf16",
    ),
    "computed_axes, of a logical reduction": Canary(
        "(bool[2,3] x, int64[1] axes) => (bool[a,b] y) { y = ReduceMin (x, axes) }",
        {"x": np.array([[True, False, True], [True, True, True]]), "axes": _i64(1)},
        loud=True,
    ),
    "computed_axes": Canary(
        "(float[2,3] x, int64[1] axes) => (float[a,b,c] y) { y = Unsqueeze (x, axes) }",
        {"x": _f32(2, 3), "axes": _i64(1)},
        loud=True,
    ),
    "absolute_value_of_shape": Canary(
        """(float[2,n] x) => (int64[2] y) {
        dims = Shape (x)
        five = Constant <value_ints = [5]> ()
        less = Sub (dims, five)
        y = Abs (less) }""",
        {"x": _f32(2, 3)},
    ),
    "absolute_value_of_shape, of a constant that is stored as f16": Canary(
        "(float[2] x) => (float[2] y) <float16[2] few = {48128, 16384}> { "
        "wide = Cast <to = 1> (few) a = Abs (wide) y = Add (a, x) }",
        {"x": _f32(2)},
    ),
    "cast_to_bool, of integers": Canary(
        "(uint32[n] x, int32[n] y, uint64[n] z) => (float[n] a, bool[n] b, bool[n] c) "
        "{ w = Cast <to = 9> (x) a = Cast <to = 1> (w) b = Cast <to = 9> (y) c = Cast <to = 9> (z) "
        "}",
        {
            "x": np.uint32([0, 3, 1 << 31, 3000000000]), "y": np.int32([0, 3, -1 << 31, -1]),
            "z": np.uint64([0, 3, 1 << 31, 3000000000]),
        },
    ),
    "cast_to_bool, of a later output": Canary(
        """(float[4] x) => (bool[2] y) {
        first, second = Split <num_outputs = 2> (x)
        y = Cast <to = 9> (second) }""",
        {"x": np.array([1, 0, 0, 1], np.float32)},
    ),
    "cast_to_bool, of TopK": Canary(
        "(float[4] x) => (bool[2] y, int64[2] z) <int64[1] k = {2}> "
        "{ most, z = TopK (x, k) y = Cast <to = 9> (most) }",
        {"x": np.array([1, 0, 0, -1], np.float32)},
        loud=True,
    ),
    "cast_to_bool, of a part": Canary(
        """(int32[n, 2] x, int64[2] sizes) => (bool[n, m] y) {
        first, second = Split <axis = 1> (x, sizes)
        y = Cast <to = 9> (first) }""",
        {"x": np.int32([[3, 0], [0, 1]]), "sizes": np.int64([1, 1])},
        loud=True,
    ),
    "rounded_bf16": Canary(
        "(float[n] x) => (float[n] y) { "
        "few = Cast <to = 16> (x) more = Cast <to = 1> (few) y = Sub (more, x) }",
        {"x": np.array([0.47, 0.469, 1.00390625 + 2e-5, 3e-38, 5e32], np.float32)},
    ),
    "rounded_bf16, in a body": Canary(
        """(float[4] x, bool c) => (float[4] y) {
        few = If (c) <
          then_branch = a () => (bfloat16[4] p) { p = Cast <to = 16> (x) },
          else_branch = b () => (bfloat16[4] q) { n = Neg (x) q = Cast <to = 16> (n) }>
        more = Cast <to = 1> (few) y = Sub (more, x) }""",
        {"x": np.array([0.47, 0.469, 0.4707, 1.00392], np.float32), "c": np.array(True)},
    ),
    "rounded_bf16, of constants": Canary(
        "() => (float[4] y) <float[4] x = {1.1, -1.1, 1.3, 2.7}> "
        "{ few = Cast <to = 16> (x) y = Cast <to = 1> (few) }",
        {},
    ),
    "rounded_bf16, of f64": Canary(
        "(double[4] x) => (float[4] y) { few = Cast <to = 16> (x) y = Cast <to = 1> (few) }",
        {"x": np.array([1.1, -1.1, 1.3, 2.7])},
    ),
    "saturating_conversion": Canary(
        "(float[n] x) => (uint8[n] y) { y = Cast <to = 2> (x) }",
        {"x": np.array([-10, 3], np.float32)},
        expected=(np.array([246, 3], np.uint8),),
    ),
    "exchanged_operands, greater": Canary(
        "(float[2] x, float[1] z) => (bool[2] y) { y = Greater (x, z) }",
        {"x": np.array([np.nan, 2], np.float32), "z": np.ones(1, np.float32)},
        seen=FEATURES["avx512"],
        on="processors with AVX-512",
    ),
    "channels_in_kernel, reduction: division": Canary(
        """(int32[2,3] x) => (int32[2,1] y) {
        axes = Constant <value_ints = [1]> ()
        sum = ReduceSum (x, axes)
        four = Constant <value = int32 {4}> ()
        y = Div (sum, four) }""",
        {"x": np.array([[1, 1, 1], [2, 2, 3]], np.int32)},
        hidden_by=("integers_in_f32",),
    ),
    "channels_in_kernel, reduction: f64": Canary(
        """(double[n,2,k] x) => (double[n,k] y) <int64[1] axis = {1}, double two = {2}> {
            total = ReduceSum <keepdims = 0> (x, axis) y = Div (total, two) }""",
        {"x": _f32(3, 2, 4).astype(np.float64)},
    ),
    "channels_in_kernel, reduction: batches of integers": Canary(
        """(uint8[n,3,k] bytes) => (int32[n,3,k] y, int32[n,1,k] z, int32[n,k] w)
        <int64[1] axis = {1}, int32 two = {2}> {
            x = Cast <to = 6> (bytes) most = ReduceMax (x, axis)
            y = Sub (x, most) z = Add (most, two)
            least = ReduceMin <keepdims = 0> (x, axis) w = Neg (least) }""",
        {"bytes": np.arange(24, dtype=np.uint8).reshape(2, 3, 4)},
    ),
    "channels_in_kernel, reduction: channels": Canary(
        """(float[n,3,4] x) => (float[n,3] y) {
        channels = Constant <value = float[3] {1, 20, 300}> ()
        axis = Constant <value_ints = [2]> ()
        total = ReduceSum <keepdims = 0> (x, axis)
        y = Add (total, channels) }""",
        {"x": _f32(5, 3, 4)},
        seen=not FEATURES["avx512"],
        on="processors without AVX-512",
    ),
    "saturating_bytes": Canary(
        "(uint8[2] x, uint8[2] z) => (uint8[2] y) { y = Add (x, z) }",
        {"x": np.array([200, 1], np.uint8), "z": np.array([100, 1], np.uint8)},
    ),
    "saturating_bytes, places of maxima": Canary(
        "(uint8[1,1,4] x) => (uint8[1,1,2] y, int64[1,1,2] places) "
        "{ y, places = MaxPool <kernel_shape = [2], strides = [2]> (x) }",
        {"x": np.array([[[0, 1, 0, 0]]], np.uint8)},
    ),
    "saturating_bytes, negated": Canary(
        "(int8[2] x) => (int8[2] y) { y = Neg (x) }", {"x": np.array([-128, 1], np.int8)}
    ),
    "compared_infinity": Canary(
        "(float[n] x) => (bool[n] y) { a = Neg (x) y = IsInf (a) }",
        {"x": np.array([1, math.inf, -math.inf, math.nan], np.float32)},
    ),
    "channels_in_kernel, product": Canary(
        """(float[n,4,3,2] x) => (float[n,4,3,4] y)
          <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[1,4,1,1] shift = {1, 2, 3, 4}> {
            p = MatMul (x, w) y = Sub (shift, p) }""",
        {"x": _f32(2, 4, 3, 2)},
    ),
    "channels_in_kernel, product: of another size": Canary(
        """(float[n,3,4,2] x) => (float[n,3,4,4] y)
          <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[1,3,1,1] shift = {1, 2, 3}> {
            p = MatMul (x, w) r = Relu (p) y = Add (r, shift) }""",
        {"x": _f32(2, 3, 4, 2)},
        loud=True,
    ),
    "channels_in_kernel, product: slopes of known shape": Canary(
        """(float[2,4,3,2] x) => (float[2,4,3,4] y)
          <float[2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, float[4,1,1] slope = {1, 2, 3, 4}> {
            p = MatMul (x, w) m = Neg (p) y = PRelu (m, slope) }""",
        {"x": _f32(2, 4, 3, 2)},
    ),
    "channels_in_kernel, product: open columns": Canary(
        """(float[n,3] x) => (float[n,m] y) <float[4] scale = {1, 2, 3, 4}> {
            t = Transpose (x) p = MatMul (x, t) y = Mul (p, scale) }""",
        {"x": _f32(4, 3)},
        loud=True,
    ),
    "channels_in_kernel, product: a scaled bias": Canary(
        """(float[n,3] x) => (float[n,m] y) <float[4] bias = {1, 2, 3, 4}> {
            y = Gemm <transB = 1, beta = 0.5> (x, x, bias) }""",
        {"x": _f32(4, 3)},
        loud=True,
    ),
    "computed_constant, a convolution of quantised constants": Canary(
        f"""() => (uint8[1,3,2,2] y) <uint8[1,2,4,4] x = {{{_filled(9, 1, 2, 4, 4)}}},
        uint8[3,2,3,3] w = {{{_filled(7, 3, 2, 3, 3)}}}, float s = {{0.5}}, float t = {{0.7}},
        uint8 z = {{3}}, int32[3] b = {{1, 2, -300}}> {{
          y = QLinearConv (x, s, z, w, s, z, t, z, b) }}""",
        {},
        loud=True,
    ),
    "computed_constant, groups": Canary(
        """(float[1,1] b) => (float[1,1] y)
        <float[1,1] x = {3}, float[1,1,1] w = {2}, float[1,1] none = {0}> {
            y = com.microsoft.MoE (x, x, w, none, w, b) }""",
        {"b": _f32(1, 1)},
        before={"b": _f32(1, 1)},
    ),
    "channels_in_kernel, quantised": Canary(
        """(float[n,4] x) => (float[n,2] y)
          <float[4] shift = {0, 1, 3, 5}, float low = {-3}, float high = {3}, float s = {0.1},
           int8 z = {0}, int8[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
            a = Add (x, shift) c = Clip (a, low, high) q = QuantizeLinear (c, s, z)
            d = DequantizeLinear (q, s, z) v = DequantizeLinear (w, s) y = MatMul (d, v) }""",
        {"x": _f32(2, 4)},
    ),
    "channels_in_kernel, quantised: open channels": Canary(
        """(float[n,m] x) => (float[n,2] y)
          <float[4] shift = {0, 1, 3, 5}, float s = {0.1}, int8 z = {0},
           int8[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
            a = Mul (x, s) c = Sub (a, shift) q = QuantizeLinear (c, s, z)
            d = DequantizeLinear (q, s, z) v = DequantizeLinear (w, s) y = MatMul (d, v) }""",
        {"x": _f32(2, 4)},
    ),
    "scaled_in_place": Canary(
        """(float[2,2] x, float scale) => (float[2,2] y) {
        weights = Constant <value = int8[2,2] {25, -76, 117, -67}> ()
        scaled = DequantizeLinear (weights, scale)
        y = MatMul (x, scaled) }""",
        {"x": _f32(2, 2), "scale": np.array(0.5, np.float32)},
        before={"x": _f32(2, 2), "scale": np.array(0.5, np.float32)},
    ),
    "lengths_of_dynamic_sequence": Canary(
        f"""(float[4,b,2] x, int32[b] lengths) => (float[4,1,b,3] y)
        <float[1,3,2] w = {{{_filled(0.1, 3, 2)}}}, float[1,3,3] r = {{{_filled(0.1, 3, 3)}}}>
        {{ y = RNN <hidden_size = 3> (x, w, r, "", lengths) }}""",
        {"x": _f32(4, 1, 2) / 10, "lengths": np.array([2], np.int32)},
    ),
    "lengths_of_dynamic_sequence, both ways": Canary(
        f"""(float[n,b,2] x, int32[b] lengths) => (float[n,2,b,3] y, float[2,b,3] h)
        <float[2,9,2] w = {{{_filled(0.1, 2, 9, 2)}}}, float[2,9,3] r = {{{_filled(0.1, 2, 9, 3)}}}>
        {{ y, h = GRU <hidden_size = 3, direction = "bidirectional"> (x, w, r, "", lengths) }}""",
        {"x": _f32(4, 3, 2) / 10, "lengths": np.array([2, 0, 4], np.int32)},
    ),
    "lengths_of_dynamic_sequence, of a cell": Canary(
        f"""(float[4,b,2] x, int32[b] lengths) => (float[1,b,3] c)
        <float[1,12,2] w = {{{_filled(0.1, 12, 2)}}}, float[1,12,3] r = {{{_filled(0.1, 12, 3)}}}>
        {{ y, h, c = LSTM <hidden_size = 3> (x, w, r, "", lengths) }}""",
        {"x": _f32(4, 2, 2) / 10, "lengths": np.array([2, 0], np.int32)},
    ),
    "no_nested_iterators": Canary(
        """(float[3,2] x, float h) => (float[3,2] y) {
        y = Scan <num_scan_inputs = 1, body = rows (float[2] row) => (float[2] sums) {
            last, sums = Scan <num_scan_inputs = 1,
              body = parts (float s, float part) => (float t, float u) {
                t = Add (s, part) u = Neg (t) }> (h, row) }> (x) }""",
        {"x": _f32(3, 2), "h": np.array(1, np.float32)},
        loud=True,
    ),
    "read_inputs, a slice": Canary(
        """(float[3] x, float[2] row) => (float[3,2] y) {
        y = Scan <num_scan_inputs = 1, body = b (float part) => (float[2] t) {
            t = Sin (row) }> (x) }""",
        {"x": _f32(3), "row": _f32(2)},
    ),
    "unknown_input, a condition": Canary(
        """(float[2,3] x, int64 n) => (float[2,3] y) {
        number = Constant <value = float {0.5}> ()
        one = Constant <value = float {1}> ()
        same = CastLike (number, one)
        runs = Greater (same, one)
        y = Loop (n, runs, x) <
          body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
            d = Identity (c) t = Add (s, s) }> }""",
        {"x": _f32(2, 3), "n": np.array(3)},
    ),
    "known_empty_tensor, of a stack": Canary(
        """(float[0,n] x, int64 trips) => (float[k,0,n] y) { y = Loop (trips, "") <
          body = b (int64 i, bool c) => (bool d, float[0,n] part) {
            d = Identity (c) part = Neg (x) }> }""",
        {"x": _f32(0, 3), "trips": np.array(2)},
    ),
    "stacks_without_iteration, parts": Canary(
        """(float[2] x, int64 n) => (float[k,2] y) {
        y = Loop (n, "") <body = b (int64 i, bool c) => (bool d, float[2] part) {
            d = Identity (c) part = Neg (x) }> }""",
        {"x": _f32(2), "n": np.array(0)},
        before={"x": _f32(2), "n": np.array(2)},
    ),
    "sizes_of_states": Canary(
        """(float[p] x, int64 n) => (float[q] y, float[r] z)
        <float[1] one = {1}, float zero = {0}> {
        y, z = Loop (n, "", x, x) <
          body = b (int64 i, bool c, float[k] s, float[l] u) => (bool d, float[m] t, float[o] v) {
            d = Identity (c)
            t = Concat <axis = 0> (s, one)
            now = Shape (s) first = Shape (x) more = Sub (now, first)
            zeros = Expand (zero, more)
            v = Concat <axis = 0> (zeros, x) }> }""",
        {"x": _f32(2), "n": np.array(3)},
    ),
    "mask_of_one_key": Canary(
        """(float[b, 1, s, 16] x, float[b, 1, p, 16] past_0_key, float[b, 1, p, 16] past_0_value) =>
        (float[b, 1, s, 16] y, float[b, 1, t, 16] present_0_key, float[b, 1, t, 16] present_0_value)
        <float half = {0.5}> {
        present_0_key = Concat <axis = 2> (past_0_key, x)
        present_0_value = Concat <axis = 2> (past_0_value, x)
        turned = Transpose <perm = [0, 1, 3, 2]> (present_0_key)
        scores = MatMul (x, turned) scaled = Mul (scores, half)
        shares = Softmax <axis = -1> (scaled) y = MatMul (shares, present_0_value) }""",
        {"x": _WORDS, "beam_idx": np.arange(2, dtype=np.int32)},
        expected=(_attention(_WORDS),),
        stateful=True,
        beams=True,
        ends=True,
    ),
    "copied_variable": Canary(
        "(float[b, 3, n] x, float[b, 3, m] past) => (float[b, 3, k] y, float[b, 3, k] present) { "
        "present = Concat <axis = 2> (past, x) y = Neg (present) }",
        {"x": _f32(2, 3, 1)},
        expected=(-_f32(2, 3, 1),),
        stateful=True,
        loud=True,
    ),
    "copied_variable, of integers": Canary(
        "(int64[2] h, int64[2] x) => (int64[2] y, int64[2] hn) { y = Neg (h) hn = Add (h, x) }",
        {"x": _i64(1, 2)},
        before={"x": _i64(3, 4)},
        expected=(_i64(-3, -4),),
        stateful=True,
        loud=True,
    ),
    "copied_variable, of floats": Canary(
        "(double[2] h, double[2] x) => (double[2] y, double[2] hn) "
        "{ y = Neg (h) hn = Add (h, x) }",
        {"x": np.array([1.0, 2.0])},
        before={"x": np.array([3.0, 4.0])},
        expected=(np.array([-3.0, -4.0]),),
        stateful=True,
        loud=True,
    ),
    "copied_variable, a cast": Canary(
        "(float[2] h, float[2] x) => (double[2] y, float[2] hn) "
        "{ y = Cast <to = 11> (h) hn = Add (h, x) }",
        {"x": _f32(2)},
        expected=(np.zeros(2),),
        stateful=True,
        loud=True,
    ),
    "copied_variable, a size": Canary(
        "(float[o] h, float[b] x) => (float[o] y, float[1] hn) "
        "{ y = Neg (h) hn = ReduceSum <keepdims = 1> (x) }",
        {"x": _f32(3)},
        before={"x": _f32(2)},
        expected=(-_f32(2).sum(keepdims=True),),
        stateful=True,
        loud=True,
    ),
    "copied_variable, an input": Canary(
        "(float[2] h, float[2] x) => (float[2] y, float[2] hn) { y = Neg (h) hn = Identity (x) }",
        {"x": _f32(2)},
        before={"x": -_f32(2)},
        expected=(_f32(2),),
        stateful=True,
    ),
    "copied_variable, a view of one": Canary(
        "(int32[1, n] h, int32[n] x) => (int32[1, n] y, int32[1, n] hn) <int64[1] first = {0}> "
        "{ y = Neg (h) hn = Unsqueeze (x, first) }",
        {"x": np.array([1, 2], np.int32)},
        before={"x": np.array([3, 4], np.int32)},
        expected=(np.array([[-3, -4]], np.int32),),
        stateful=True,
    ),
    "copied_variable, a constant": Canary(
        "(float[2] h, float[2] x) => (float[2] y, float[2] hn) <float[2] k = {3, 4}> "
        "{ y = Add (h, x) hn = Identity (k) }",
        {"x": _f32(2)},
        before={"x": _f32(2)},
        expected=(np.array([4, 6], np.float32),),
        stateful=True,
    ),
    "group_normalization, in body": Canary(
        """(bool c, float[1,4,2] x, float[4] scale, float[4] bias) => (float[1,4,2] y) {
        y = If (c) <
          then_branch = t () => (float[1,4,2] u) {
            u = GroupNormalization <num_groups = 2> (x, scale, bias) },
          else_branch = e () => (float[1,4,2] v) { v = Neg (x) }> }""",
        {"c": np.array(True), "x": _f32(1, 4, 2), "scale": _f32(4), "bias": _f32(4)},
        loud=True,
    ),
    "group_normalization, with a bias of open size": Canary(
        "(float[2, 4] x, float[4] scale, float[n] bias) => (float[2, 4] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, scale, bias) }",
        {"x": _f32(2, 4), "scale": _f32(4), "bias": _f32(4)},
        loud=True,
    ),
    "group_normalization, before selection": Canary(
        """(bool c, float[1,4,2] x, float[4] scale, float[4] bias) => (float[1,4,2] y) {
        u = GroupNormalization <num_groups = 2> (x, scale, bias)
        v = Exp (x)
        y = Where (c, u, v) }""",
        {"c": np.array(True), "x": _f32(1, 4, 2), "scale": _f32(4), "bias": _f32(4)},
        ends=True,
        loud=True,
    ),
    "constant_of_higher_rank": Canary(
        """(float[3] x) => (float[1,3] y) <float[1,1] most = {1}, float least = {0}> {
        below = Min (x, most) y = Max (below, least) }""",
        {"x": _f32(3)},
    ),
    "unknown_input": Canary(
        """() => (float[1,1] last, bool[n] y) {
        count = Constant <value_int = 1> ()
        go = Constant <value = bool {1}> ()
        start = Constant <value = float[1,1] {-0.375}> ()
        last, y = Loop (count, go, start) <body = b (int64 i, bool c, float[1,1] s)
            => (bool on, float[1,1] next, bool w) {
            two = Constant <value = int64 {2}> ()
            second = Equal (i, two)
            next = If (second) <
                then_branch = t () => (float[1,1] p) { p = Identity (start) },
                else_branch = e () => (float[1,1] q) {
                    q = Constant <value = float[1,1] {0.375}> ()
                }
            >
            on = Less (i, two)
            w = Constant <value = bool {1}> ()
        }> }""",
        {},
        loud=True,
    ),
    "computed_constant, of bytes": Canary(
        """(int64[2,2] x) => (int64[2,2] y) <int8[2,2] data = {1, 2, 3, 4}, int8 three = {3}> {
        few = Less (data, three) some = Cast <to = 7> (few) y = Add (some, x) }""",
        {"x": _i64(1, 2, 3, 4).reshape(2, 2)},
        before={"x": _i64(1, 2, 3, 4).reshape(2, 2)},
    ),
    "computed_constant, of integers": Canary(
        """(float[2,2] x) => (float[2,2] y) <int64[2,2] data = {1, 2, 3, 4}, int64 axis = {1}> {
        sums = CumSum (data, axis) some = Cast <to = 1> (sums) y = Mul (some, x) }""",
        {"x": _f32(2, 2)},
        before={"x": _f32(2, 2)},
    ),
    "computed_constant, overwritten": Canary(
        """(float[2,2] x) => (float[2,2] y)
        <float[2,2] data = {1, 2, 3, 4}, int64[2,2] indices = {0, 1, 1, 0}> {
        some = GatherElements <axis = 1> (data, indices) y = Mul (some, x) }""",
        {"x": _f32(2, 2)},
        before={"x": _f32(2, 2)},
    ),
    "sizes_of_states, contradiction": Canary(
        f"""(float[t,2] x, int64 trips) => (float[q] y)
        <float[4,2] w = {{{_filled(0.5, 4, 2)}}}, int64 zero = {{0}}, float[1] start = {{0}}> {{
        y = Loop (trips, , start) <body = b (int64 i, bool c, float[d] h) => (bool e, float[k] g) {{
        e = Identity (c) first = Equal (i, zero)
        g = If (first) <then_branch = t () => (float[m] a) {{ a = Gather (x, i) }},
        else_branch = o () => (float[n] f) {{
        row = Gather (x, i) all = Concat <axis = 0> (h, row) f = MatMul (all, w) }}> }}> }}""",
        {"x": _f32(3, 2), "trips": np.array(3)},
        hidden_by=("place_of_states",),
        loud=True,
    ),
    "unique_parts, unsorted": Canary(
        "(float[2,3] x) => (float[k] y) { y = Unique <sorted = 0> (x) }",
        {"x": np.array([[2, 1, 1], [3, 4, 3]], np.float32)},
    ),
    "unique_parts, of bytes": Canary(
        """(int8[6] x) => (int8[k] y, int64[k] first, int64[6] places, int64[k] counts) {
        y, first, places, counts = Unique <axis = 0, sorted = 0> (x) }""",
        {"x": np.array([2, 1, 1, 3, 4, 3], np.int8)},
    ),
    "unique_parts, along the second axis": Canary(
        """(int8[2,3,2] x) => (int8[2,u,2] y, int64[u] first) {
        y, first = Unique <axis = 1> (x) }""",
        {"x": np.array([[[0, 1], [1, 1], [1, 0]], [[1, 0], [1, 1], [0, 0]]], np.int8)},
    ),
    "memory_of_branch": Canary(
        """(bool c, float[3,3] x, float[1] k) => (float[m,3] y) {
        a = If (c) <
          then_branch = t () => (float[3,3] p) { p = Neg (x) },
          else_branch = e () => (float[1,3] q) {
            axis = Constant <value_ints = [0]> () q = ReduceMax (x, axis) }>
        repeats = Constant <value_ints = [2, 1]> ()
        t = Tile (a, repeats)
        s = Sub (t, k)
        y = Mul (s, s) }""",
        {"c": np.array(True), "x": _f32(3, 3), "k": _f32(1)},
    ),
    "memory_inside": Canary(
        """(float[4,2] x, float[2] a, float[2] b) => (float[2] y, float[2] z, float[4,2] all) {
        y, z, all = Scan <num_scan_inputs = 1,
          body = b (float[2] s, float[2] u, float[2] part)
            => (float[2] t, float[2] v, float[2] w) {
            t = Identity (u) v = Identity (s) w = Add (part, s) }> (a, b, x) }""",
        {"x": _f32(4, 2), "a": _f32(2), "b": _f32(2) + 5},
    ),
    "memory_inside, rotation": Canary(
        """(float[1,2,3,4] x, float[1,3,2] cos, float[1,3,2] sin) => (float[2,1,2,3,4] y)
        <int64 trips = {2}> {
        y = Loop (trips, "") <body = b (int64 i, bool c) => (bool d, float[1,2,3,4] turned) {
            d = Identity (c) turned = RotaryEmbedding (x, cos, sin) }> }""",
        {"x": _f32(1, 2, 3, 4), "cos": _f32(1, 3, 2), "sin": _f32(1, 3, 2)},
        opset=23,
    ),
    "memory_inside, row": Canary(
        """(float[4,2,3] x, float[3] h) => (float[3] last, float[4,3] y) {
        last, y = Scan <num_scan_inputs = 1,
          body = b (float[3] s, float[2,3] part) => (float[3] t, float[3] before) {
            zero = Constant <value_int = 0> ()
            t = Gather (part, zero) before = Identity (s) }> (h, x) }""",
        {"x": _f32(4, 2, 3), "h": np.zeros(3, np.float32)},
    ),
    "memory_inside, part": Canary(
        """(float[4,2,3] x, float[3] h) => (float[3] last, float[4,3] y) {
        last, y = Scan <num_scan_inputs = 1,
          body = b (float[3] s, float[2,3] part) => (float[3] t, float[3] before) {
            row = Constant <value_ints = [3]> () first, second = Split <axis = 0> (part)
            t = Reshape (first, row) before = Identity (s) }> (h, x) }""",
        {"x": _f32(4, 2, 3), "h": np.zeros(3, np.float32)},
        opset=13,
    ),
    "sizes_of_states, unseen": Canary(
        """(float[1] x, int64 n) => (float y) {
        zero = Constant <value = float {0}> ()
        y, grown = Loop (n, "", zero, x) <
          body = b (int64 i, bool c, float sum, float[k] s) => (bool d, float more, float[l] t) {
            d = Identity (c)
            count = Size (s) number = Cast <to = 1> (count) more = Add (sum, number)
            t = Concat <axis = 0> (s, x) }> }""",
        {"x": _f32(1), "n": np.array(3)},
        loud=True,
    ),
    "place_of_states": Canary(
        """(float[k] x, float[l] y, int64 n) => (float[m] p, float[o] q) <float one = {1}> {
        p, q = Loop (n, "", x, y) <
          body = b (int64 i, bool c, float[a] s, float[e] u) => (bool d, float[f] t, float[g] v) {
            d = Identity (c) t = Add (u, one) v = Identity (s) }> }""",
        {"x": _f32(3), "y": _f32(2), "n": np.array(3)},
        before={"x": _f32(3), "y": _f32(2), "n": np.array(3)},
        ends=True,
    ),
    "stacks_without_iteration": Canary(
        """(float[k] x, int64 n) => (float[m,k] y) {
        y = Loop (n, "") <body = b (int64 i, bool c) => (bool d, float[k] part) {
            d = Identity (c) part = Neg (x) }> }""",
        {"x": _f32(2), "n": np.array(0)},
        before={"x": _f32(2), "n": np.array(2)},
    ),
    "read_inputs": Canary(
        """(float[2] x, int64 n) => (float[2] y) {
        y = Loop (n, "", x) <
          body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
            d = Identity (c) t = Neg (x) }> }""",
        {"x": _f32(2), "n": np.array(0)},
    ),
}  # fmt: skip
"""The canaries by the path of the quirk; if it has several, with the difference behind a comma."""
