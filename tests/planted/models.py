"""The models that faults are planted in, each with the inputs of its domain.

Kinds that `roundtrip_models/` and the standard's node tests lack are written here. Of an input, a
line `feed x -1..1` says the range, `dims N = 1, 3` the sizes of a symbol, and `special x 0, nan`
numbers that some of its elements take now and then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.conformance.cases import Case, cases
from tests.support import model_files
from tests.support.model_files import ONNX_FILES, load_onnx, onnx_inputs

Feed = dict[str, np.ndarray]

_BODIES = {
    "loop_counts": """(int64 n, float[N] x) => (float[N] y, int64 k) <bool t = {1}, int64 z = {0}>
        { y, k = Loop (n, t, x, z) <body = b (int64 i, bool c, float[N] s, int64 j)
        => (bool d, float[N] o, int64 p) { d = Identity (c) v = Cast <to = 1> (i) q = Sin (v)
        o = Add (s, q) p = Add (j, i) }> }
        feed n 0..15""",
    "loop_while": """(float[4] x, float limit) => (float[4] y, float[M,4] all) <bool t = {1},
        float two = {1.3}> { y, all = Loop (, t, x) <body = b (int64 i, bool c, float[4] s)
        => (bool d, float[4] o, float[4] u) { o = Mul (s, two) r = ReduceMax <keepdims = 0> (o)
        d = Less (r, limit) u = Sub (o, s) }> }
        feed x 0.1..1\n feed limit 1..60""",
    "scan_sum": """(float[N,3] x) => (float[3] y, float[N,3] all) <float[3] z = {0, 0, 0}> {
        y, all = Scan (z, x) <num_scan_inputs = 1, body = b (float[3] s, float[3] v)
        => (float[3] o, float[3] p) { o = Add (s, v) p = Tanh (o) }> }
        dims N = 1, 3, 12, 20""",
    "nested_if": """(float[8] x, int64 mode) => (float[8] y) <int64 two = {2}, int64 five = {5},
        float k = {0.75}, float[8] w = {}> { c = Less (mode, two) y = If (c) <then_branch = a () =>
        (float[8] p) { p = Mul (x, w) }, else_branch = e () => (float[8] q) {
        d = Equal (mode, five) q = If (d) <then_branch = f () => (float[8] r) { r = Add (x, k) },
        else_branch = g () => (float[8] s) { s = Neg (x) }> }> }
        feed mode 0..9""",
    "rare_if": """(float[4] x) => (float[4] y) <float k = {77.125}, float two = {2}> {
        m = ReduceMax <keepdims = 0> (x) c = Equal (m, k) y = If (c) <then_branch = a () =>
        (float[4] p) { p = Mul (x, two) }, else_branch = e () => (float[4] q) {
        q = Identity (x) }> }
        feed x -100..77\n special x 77.125""",
    "if_in_loop": """(int64 n, float[5] x) => (float[5] y) <bool t = {1}, int64 eight = {8}> {
        y = Loop (n, t, x) <body = b (int64 i, bool c, float[5] s) => (bool d, float[5] o) {
        d = Identity (c) e = Equal (i, eight) o = If (e) <then_branch = f () => (float[5] p) {
        p = Neg (s) }, else_branch = g () => (float[5] q) { h = Sin (s) q = Add (h, s) }> }> }
        feed n 0..14""",
    "lstm": """(float[T,2,5] x) => (float[T,1,2,4] y, float[1,2,4] h, float[1,2,4] c)
        <float[1,16,5] w = {}, float[1,16,4] wr = {}, float[1,32] wb = {}> {
        y, h, c = LSTM <hidden_size = 4> (x, w, wr, wb) }
        dims T = 1, 4, 12""",
    "gru_both": """(float[T,2,5] x) => (float[T,2,2,4] y, float[2,2,4] h)
        <float[2,12,5] w = {}, float[2,12,4] wr = {}, float[2,24] wb = {}> {
        y, h = GRU <hidden_size = 4, direction = "bidirectional", linear_before_reset = 1>
        (x, w, wr, wb) }
        dims T = 1, 4, 12""",
    "convolutions": """(float[B,3,16,16] x) => (float[B,10] y) <float[8,3,3,3] w1 = {},
        float[8] w2 = {}, float[8,1,3,3] w3 = {}, float[10,8] w4 = {}, float[10] w5 = {}> {
        a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w1, w2) b = Relu (a)
        c = Conv <pads = [1, 1, 1, 1], group = 8> (b, w3)
        d = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (c)
        e = GlobalAveragePool (d) f = Flatten (e) y = Gemm <transB = 1> (f, w4, w5) }
        dims B = 1, 2""",
    "int8": """(float[1,4,8,8] x) => (float[1,4,8,8] y) <float s = {0.02}, float u = {0.01},
        uint8 z = {128}, int8 zero = {0}, int8[4,4,3,3] wq = {}> {
        q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)
        f = DequantizeLinear (wq, u, zero) c = Conv <pads = [1, 1, 1, 1]> (d, f) y = Relu (c) }""",
    "f16": """(float16[B,32] x) => (float16[B,16] y) <float16[32,32] w1 = {}, float16[32] w2 = {},
        float16[32,16] w3 = {}> { a = MatMul (x, w1) b = Add (a, w2) c = Relu (b)
        d = MatMul (c, w3) y = Softmax <axis = -1> (d) }
        dims B = 1, 3""",
    "classifier": """(float[B,20] x) => (int64[B] label, float[B,3] best, int64[B,3] places)
        <float[20,500] w = {}, int64[1] k = {3}> { a = MatMul (x, w) p = Softmax <axis = 1> (a)
        label = ArgMax <axis = 1, keepdims = 0> (p) best, places = TopK <axis = 1> (p, k) }
        dims B = 1, 4""",
    "large_softmax": """(float[1,8] x) => (float[1,30000] y) <float[8,30000] w = {}> {
        a = MatMul (x, w) y = Softmax <axis = -1> (a) }""",
    "image": """(uint8[1,12,12,3] x) => (float[1,3,12,12] y, uint8[1,12,12,3] light)
        <float mean = {117.5}, float s = {0.017}, uint8 by = {2}> {
        f = Cast <to = 1> (x) m = Sub (f, mean) n = Mul (m, s)
        y = Transpose <perm = [0, 3, 1, 2]> (n) light = Div (x, by) }
        feed x 0..255""",
    "embedding": """(int64[B,T] ids) => (float[B,T,8] y, int64[B,T] next) <float[300,8] w = {},
        int64 one = {1}> { y = Gather (w, ids) next = Add (ids, one) }
        feed ids 0..299\n dims T = 1, 5, 18""",
    "attention": """(float[B,T,16] x, int64[B,T] mask) => (float[B,T,16] y) <float[16,16] w1 = {},
        float[16,16] w2 = {}, float[16,16] w3 = {}, float[16] w4 = {}, float[16] w5 = {},
        float scale = {0.25}, float low = {-1e4}, float one = {1}, int64[1] ax = {1}> {
        q = MatMul (x, w1) k = MatMul (x, w2) v = MatMul (x, w3)
        t = Transpose <perm = [0, 2, 1]> (k)
        s = MatMul (q, t) m = Mul (s, scale) f = Cast <to = 1> (mask) g = Sub (one, f)
        h = Mul (g, low) u = Unsqueeze (h, ax) a = Add (m, u) p = Softmax <axis = -1> (a)
        o = MatMul (p, v) r = Add (o, x) y = LayerNormalization (r, w4, w5) }
        feed mask 0..1\n special mask 1\n dims T = 2, 5, 17\n dims B = 1, 2""",
    "decoder": """(float[1,1,8] x, float[1,P,8] past)
        => (float[1,1,40] logits, float[1,Q,8] present)
        <float[8,8] w1 = {}, float[8,8] w2 = {}, float[8,40] w3 = {}> { k = MatMul (x, w1)
        present = Concat <axis = 1> (past, k) t = Transpose <perm = [0, 2, 1]> (present)
        q = MatMul (x, w2) s = MatMul (q, t) p = Softmax <axis = -1> (s) o = MatMul (p, present)
        logits = MatMul (o, w3) }
        dims P = 1, 3, 17""",
    "boxes": """(float[1,12,4] boxes, float[1,3,12] scores) => (int64[K,3] kept)
        <int64 most = {4}, float iou = {0.5}, float least = {0.3}> {
        kept = NonMaxSuppression (boxes, scores, most, iou, least) }
        feed boxes 0..1\n feed scores 0..1""",
    "tiny": """(float[6] x) => (float[6] y, float[6] z) <float k = {1e-7}> {
        y = Mul (x, k) z = Relu (x) }""",
    "counter": """(int64[N] x, int64 step) => (int64[N] y, int64 total)
        <int64 zero = {0}> { a = Mul (x, step)
        y = CumSum (a, zero) total = ReduceSum <keepdims = 0> (y) }
        feed x 0..4000000\n feed step 1..3""",
    "several": """(float[N,6] x) => (float[N,6] a, float[N,6] b, float[N,1] c, bool[N,6] d)
        <float k = {0.5}, int64[1] ax = {1}> { a = Sigmoid (x) b = Tanh (x) c = ReduceSum (x, ax)
        d = GreaterOrEqual (x, k) }
        special x 0.5, 0\n dims N = 1, 3, 18""",
    "nan_mask": """(float[N] x) => (float[N] y, float[N] z) <float k = {0.5}> { n = IsNaN (x)
        y = Where (n, k, x) z = Add (x, k) }
        special x nan, 0.5, -0.0""",
    "nan_mean": """(float[N,5] x) => (float[N,1] y, float[N,5] z) <float k = {0},
        int64[1] ax = {1}> { n = IsNaN (x) v = Where (n, k, x) m = Not (n) c = Cast <to = 1> (m)
        s = ReduceSum (v, ax) t = ReduceSum (c, ax) y = Div (s, t) z = Mul (x, c) }
        special x nan""",
    "sign_of_zero": """(float[N] x) => (float[N] y) <float k = {0}, float one = {1},
        float two = {2}> { r = Reciprocal (x) c = Less (r, k) a = Where (c, two, one)
        y = Add (a, x) }
        special x 0, -0.0""",
    "reciprocal_of_zero": """(float[6] x) => (float[6] y) { n = Neg (x) r = Relu (x) a = Sub (n, r)
        y = Reciprocal (a) }
        special x 0, -0.0""",
    "rounded": """(float[N] x) => (float[N] y, float[N] f, int64[N] i) { y = Round (x) f = Floor (x)
        c = Ceil (x) i = Cast <to = 7> (c) }
        feed x -4..4\n special x 0.5, 1.5, -2.5, 2""",
    "clipped": """(float[N] x) => (float[N] y, uint8[N] q) <float low = {-60}, float high = {90},
        float s = {0.7}, uint8 z = {100}> { y = Clip (x, low, high) q = QuantizeLinear (x, s, z) }
        feed x -200..200\n dims N = 1, 4, 17""",
    "padded": """(float[1,2,9] x) => (float[1,2,6] y, float[1,2,5] m) <float[2,2,3] w = {},
        int64[6] p = {0, 0, 2, 0, 0, 1}> { a = Pad (x, p) y = Conv <strides = [2], pads = [1, 1]>
        (a, w) m = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 1> (x) }""",
    "sliced": """(float[N,7] x) => (float[N,3] y, float[N,2] z) <int64[1] b = {2}, int64[1] e = {5},
        int64[1] ax = {1}, int64[2] i = {6, 0}> { y = Slice (x, b, e, ax)
        z = Gather <axis = 1> (x, i) }
        dims N = 1, 5, 18""",
    "random": """(float[8] x) => (float[8] y, float[8] z) <float k = {100}> {
        r = RandomUniformLike (x) a = Mul (r, k) y = Add (a, x) z = Sin (x) }""",
}  # fmt: skip


@dataclass(frozen=True)
class Planted:
    """A model, the file that says its domain, and how far right files of it are apart: the share of
    an output's range that hides no fault worth finding."""

    name: str
    write: Callable[[Path], Path]
    domain: Callable[[int], Feed | None]
    noise: float = 1e-3


def own_models() -> list[Planted]:
    return [_own(name) for name in _BODIES]


def roundtrip_models() -> list[Planted]:
    return [_file(path) for path in ONNX_FILES]


def _own(name: str) -> Planted:
    text, *lines = re.split(r"\n\s*(?=feed|special|dims)", _BODIES[name])
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> m {text}')
    rng = np.random.default_rng(len(name))
    for tensor in model.graph.initializer:
        if tensor.name[0] == "w":
            dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            drawn = rng.normal(size=tuple(tensor.dims)) * (30 if dtype.kind == "i" else 0.5)
            tensor.CopyFrom(numpy_helper.from_array(drawn.astype(dtype), tensor.name))
    noise = {"f16": 0.02, "int8": 0.06}.get(name, 1e-3)
    return Planted(name, _writer(model), _Domain(model, "\n".join(lines)).feed, noise)


def _file(path: Path) -> Planted:
    def write(folder: Path) -> Path:
        onnx.save(load_onnx(path), folder / "original.onnx")
        return folder / "original.onnx"

    noise = 0.06 if "quanti" in path.stem or "bytes" in path.stem else 1e-3
    return Planted(path.stem, write, partial(_of_file, path), noise)


def _of_file(path: Path, index: int) -> Feed | None:
    model = load_onnx(path)
    inputs = onnx_inputs(model)
    if any(item.is_sequence or item.is_optional for item in inputs):
        return None
    return _with_specials(model_files.feeds(path, inputs, index), _numbers(model), index)


def node_tests() -> list[Planted]:
    return [
        Planted(case.name, _writer(case.model), partial(_of_case, case))
        for case in cases().values()
    ]


def _of_case(case: Case, index: int) -> Feed | None:
    """The case's own inputs; after the first, floats change places and are scaled a little."""
    rng, feed = np.random.default_rng(index), {}
    for value, array in zip(case.model.graph.input, case.data_sets[0][0], strict=True):
        if not isinstance(array, np.ndarray):
            return None
        if index and array.dtype.kind == "f" and array.size > 4:
            drawn = rng.permuted(array.reshape(-1)) * rng.uniform(0.3, 1)
            array = drawn.reshape(array.shape).astype(array.dtype)
        feed[value.name] = array
    return feed


def _writer(model: onnx.ModelProto) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        onnx.save(model, folder / "original.onnx")
        return folder / "original.onnx"

    return write


class _Domain:
    """Draws inputs from what lines say of them."""

    def __init__(self, model: onnx.ModelProto, lines: str) -> None:
        self.inputs = onnx_inputs(model)
        self.ranges = {
            name: (float(low), float(high))
            for name, low, high in re.findall(r"feed (\w+) (\S+)\.\.(\S+)", lines)
        }
        self.special = _listed(lines, "special")
        self.dims = _listed(lines, "dims")
        self.numbers = {name: [*map(float, found)] for name, found in self.special.items()}

    def feed(self, index: int) -> Feed:
        rng, sizes = np.random.default_rng(index), {}
        feed = {}
        for item in self.inputs:
            shape = [
                dim if isinstance(dim, int) else sizes.setdefault(
                    dim, int(rng.choice([*map(int, self.dims.get(str(dim), ["1", "2", "5"]))]))
                )
                for dim in item.dims
            ]  # fmt: skip
            low, high = self.ranges.get(item.name, (-2, 2) if item.dtype.kind == "f" else (0, 3))
            if item.dtype.kind == "f":
                drawn = rng.uniform(low, high, shape)
            else:
                drawn = rng.integers(int(low), int(high) + 1, shape)
            feed[item.name] = np.asarray(drawn).astype(item.dtype)
        return _with_specials(feed, self.numbers, index)


def _listed(lines: str, kind: str) -> dict[str, list[str]]:
    found = re.findall(rf"{kind} (\w+) =? ?([^\n]*)", lines)
    return {name: [part.strip() for part in listed.split(",")] for name, listed in found}


def _numbers(model: onnx.ModelProto) -> dict[str, list[float]]:
    """A few float constants of the model, which inputs may equal."""
    found = [
        float(numpy_helper.to_array(tensor).reshape(-1)[0])
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and 0 < np.prod(tensor.dims) < 5
    ]
    return {value.name: found for value in model.graph.input} if found else {}


def _with_specials(feed: Feed, numbers: dict[str, list[float]], index: int) -> Feed:
    """Each third input has a special number in some elements."""
    rng = np.random.default_rng(index)
    for name, special in numbers.items():
        if index % 3 == 2 and name in feed and feed[name].dtype.kind in "fi" and feed[name].ndim:
            hit = rng.random(feed[name].shape) < 0.3
            feed[name] = np.where(hit, rng.choice(special), feed[name]).astype(feed[name].dtype)
    return feed
