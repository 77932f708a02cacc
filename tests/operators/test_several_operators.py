"""Small programs of operators that one behind the other were wrong: in onnxruntime, as IR in
OpenVINO, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import openvino
import pytest

import bridge
from bridge.check import check
from tests.programs.verdict import judge

X = np.array([3, -1, 3, 2], np.float32)
IMAGE = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype(np.float32)
RANKS = ", ".join("abcdefg")

PROGRAMS: dict[str, tuple[int, str, dict[str, np.ndarray]]] = {
    "an Einsum that changes nothing, of one of several outputs": (
        17,
        "(float[k] x) => (float[u] y, int64[u] i) { v, i, j, c = Unique (x) "
        'y = Einsum <equation = "...->..."> (v) }',
        {"x": X},
    ),
    "an operator of an old set behind others of unknown types": (
        8,
        "(float[1,2,3,4] x) => (float[2,3,4] y) { "
        'w = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]> (x) '
        "p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (w) "
        "v = Squeeze <axes = [0]> (p) y = Hardmax <axis = 0> (v) }",
        {"x": IMAGE},
    ),
    "a branch that fails whenever it runs": (
        17,
        "(float[k] x, bool go) => (float[u] y) <int64[1] none = {0}, int64 first = {-1}, "
        "int64 step = {-1}> { y = If (go) <then_branch = t () => (float[a] p) { n = Size (x) "
        "r = Range (first, n, step) p = Reshape (x, r) q = Neg (p) }, "
        "else_branch = e () => (float[b] q) { q = Neg (x) }> }",
        {"x": X, "go": np.array(False)},
    ),
    "a TopK of the lesser of two numbers": (
        17,
        "(float[k] x, int64[1] n) => (float[u] y, int64[u] i) <int64[1] most = {3}> "
        "{ m = Min (n, most) y, i = TopK (x, m) }",
        {"x": X, "n": np.array([2])},
    ),
    "a Where of large integers that an integer chooses": (
        17,
        "(int32[n] m, int32[n] x, int32[n] z) => (int32[n] y) "
        "{ c = Cast <to = 9> (m) y = Where (c, x, z) }",
        {
            "m": np.int32([0, 1, 5]),
            "x": np.int32([16777217, 16777219, 33554435]),
            "z": np.int32([16777217, 16777219, 7]),
        },
    ),
    "a Tile of four axes beside a product": (
        17,
        "(float[k] x, float[a,b,c,d] z, int64[4] n) => (float[k] y, float[e,f,g,h] t) "
        "{ y = Mul (x, x) t = Tile (z, n) }",
        {"x": X, "z": IMAGE, "n": np.array([2, 1, 3, 2])},
    ),
    "sums of seven axes, in a Loop, beside others": (
        17,
        f"(float[k] x, float[{RANKS}] z, int64 n) => (float[k] y, float[{RANKS}] t) "
        f"{{ y = Add (x, x) t = Loop (n, , z) <body = b (int64 i, bool c, float[{RANKS}] s) => "
        f"(bool d, float[{RANKS}] u) {{ d = Identity (c) u = Add (s, z) }}> }}",
        {"x": X, "z": IMAGE.reshape(2, 1, 1, 3, 1, 2, 2), "n": np.array(2)},
    ),
    "places in buckets": (
        17,
        "(int64[k] ids, float[1009,2] table) => (float[k,2] y) <int64 most = {1009}> "
        "{ i = Mod (ids, most) y = Gather (table, i) }",
        {
            "ids": np.array([16777219, 2147483629, 987654321, 5]),
            "table": np.arange(2018, dtype=np.float32).reshape(1009, 2),
        },
    ),
}


def model_of(opset: int, text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_right_both_ways(name: str) -> None:
    opset, text, feed = PROGRAMS[name]
    verdict = judge(model_of(opset, text), [feed, feed])
    assert verdict.kind == "right", verdict.detail


def test_sizes_by_a_ratio_that_is_given(tmp_path: Path) -> None:
    """A network that works on a smaller image has known sizes once its ratio is given."""
    model = model_of(
        13,
        "(float[n,3,h,w] x, float[1] ratio) => (float[n,3,h,w] y) "
        "<float[2] whole = {1, 1}, int64[1] first = {2}, int64[1] last = {4}> { "
        "scales = Concat <axis = 0> (whole, ratio, ratio) "
        's = Resize <mode = "linear"> (x, , scales) '
        "small = Relu (s) sizes = Shape (x) few = Shape (small) "
        "space = Slice (sizes, first, last) channels = Slice (few, zero, first) "
        'all = Concat <axis = 0> (channels, space) y = Resize <mode = "linear"> (small, , , all) }',
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "zero"))
    known = {"device": "NPU", "values": {"ratio": 0.5}, "input_shapes": {"x": [1, 3, 16, 24]}}
    bridge.convert(model, tmp_path / "m.xml", **known)
    (output,) = openvino.Core().read_model(tmp_path / "m.xml").outputs
    assert output.get_partial_shape().to_shape() == [1, 3, 16, 24]


def test_a_spectrum_of_both_sides_is_nobodys_fault() -> None:
    """Frames of a length that is no power of two are summed in another order."""
    model = model_of(
        18,
        "(float[b,t,1] x) => (float[b,f,k] y) <int64 hop = {40}> { y0 = STFT <onesided = 0> "
        "(x, hop, window) two = Constant <value_ints = [3]> () y = ReduceSumSquare <keepdims = 0> "
        "(y0, two) }",
    )
    window = np.hanning(100).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(window, "window"))
    report = check(model, samples=2, input_shapes={"x": [1, 400, 1]}, ranges={"x": (-100, 100)})
    assert report.ok, str(report)
