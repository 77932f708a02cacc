"""Sizes with upper bounds, as OpenVINO's NPU compiler needs them: OpenVINO finds the same
bounds."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import openvino
import pytest

import bridge
from bridge import Interval
from tests.support.graphs import HEADER

STACKS = (
    "<body = b (int64 i, bool c, float[2,4] s) => (bool d, float[2,4] q, float[2,4] r) "
    "{ z = ReduceMax <keepdims = 0> (s) e = Greater (z, zf) d = Identity (END) q = Identity (s) "
    "r = Neg (s) }>"
)
GROWS = (
    "<body = b (int64 i, bool c, float[K,4] s) => (bool d, float[L,4] q) "
    "{ d = Identity (c) q = Concat <axis = 0> (s, s) }>"
)

# Inputs, and nodes that make y. T is 2 to 8, t a vector of T elements, s the shape of x.
BOUNDED: list[tuple[str, str]] = [
    ("float[1,6,4] x, float[1,2,6] p", "y = NonMaxSuppression (x, p, three, half)"),
    ("float[2,3] x", "y = NonZero (x)"),
    ("float[4,3] x, bool[4] c", "y = Compress <axis = 0> (x, c)"),
    ("float[9] x, int64[1] k", "y, i = TopK (x, k)"),
    ("float[9] x, int64[1] k", "m = Min (k, three) y, i = TopK (x, m)"),
    ("float[T,4] x", "y = Expand (half, t)"),
    ("float[T,4] x", "c = Concat <axis = 0> (t, three) y = Expand (half, c)"),
    ("float[T,4] x", "y = ConstantOfShape (t)"),
    ("float[T,4] x", "y = Reshape (x, minus)"),
    ("float[T,4] x", "c = Concat <axis = 0> (minus, two) y = Reshape (x, c)"),
    ("float[T,4] x", "c = Concat <axis = 0> (t, two, two) y = Reshape (x, c)"),
    ("float[T,4] x", "y = Tile (t, t)"),
    ("float[T,4] x", "d = Div (t, two) c = Concat <axis = 0> (d, one) y = Tile (x, c)"),
    ("float[T,4] x", "d = Div (t, two) y = Slice (x, zero, d)"),
    ("float[T,4] x", "d = Mul (t, t) y = Expand (half, d)"),
    ("float[T,4] x", "d = Max (t, three) y = Expand (half, d)"),
    ("float[T,4] x", "d = Min (t, three) y = Expand (half, d)"),
    ("float[T,4] x", "d = Sub (t, two) y = Expand (half, d)"),
    ("float[T,4] x", "d = Add (t, two) y = Expand (half, d)"),
    ("float[T,4] x", "d = Squeeze (t) e = Unsqueeze (d, zero) y = Expand (half, e)"),
    ("float[T,4] x", "d = ReduceProd (s) y = Expand (half, d)"),
    ("float[T,4] x, int64[2] k", "d = Squeeze (t) y = OneHot (k, d, pair)"),
    ("float[2,4] x", "last, y = Loop (trips, true, x) " + STACKS.replace("END", "c")),
    ("float[2,4] x", "y = Loop (trips, true, x) " + GROWS),
    ("float[T,4] x", "y = Loop (trips, true, x) " + GROWS),
]  # fmt: skip

OPEN: list[tuple[str, str]] = [
    ("float[T,4] x", "d = Squeeze (t) i = Squeeze (zero) j = Squeeze (one) y = Range (i, d, j)"),
    ("float[T,4] x, bool[1] c", "d = Where (c, t, two) y = Expand (half, d)"),
    ("float[T,4] x, int64[1] k", "d = Min (t, k) y = Expand (half, d)"),
    ("float[T,4] x, int64[1] k", "y = Expand (half, k)"),
    ("float[2,4] x", "last, y = Loop (trips, true, x) " + STACKS.replace("END", "e")),
    (
        "float[2,4] x, bool c",
        "y = If (c) <then_branch = t () => (float[2,4] u) { u = Neg (x) }, "
        "else_branch = e () => (float[1,4] v) { v = ReduceMax (x, zero) }>",
    ),
]
"""Sizes for which OpenVINO finds no bound."""


def model(inputs: str, nodes: str) -> onnx.ModelProto:
    """A model of y, with only the rank of y declared."""
    parsed = onnx.parser.parse_model(f"""{HEADER} g ({inputs}) => (float y)
    <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}},
     int64[1] minus = {{-1}}, float[1] half = {{0.5}}, float[2] pair = {{0, 1}},
     bool true = {{1}}, int64 trips = {{3}}, float zf = {{0}}>
    {{ s = Shape (x) t = Slice (s, zero, one) {nodes} }}""")
    del parsed.graph.output[:]
    inferred = onnx.shape_inference.infer_shapes(parsed)
    (y,) = [value for value in inferred.graph.value_info if value.name == "y"]
    for dim in y.type.tensor_type.shape.dim:
        dim.Clear()
    parsed.graph.output.append(y)
    return parsed


def write(inputs: str, nodes: str, folder: Path) -> Path:
    shapes = {"x": [Interval(2, 8), 4]} if "T" in inputs else {}
    path = folder / "m.xml"
    bridge.convert(model(inputs, nodes), path, device="NPU", input_shapes=shapes)
    return path


@pytest.mark.parametrize("inputs, nodes", BOUNDED)
def test_sizes_that_openvino_bounds_are_written_for_npu(
    inputs: str, nodes: str, tmp_path: Path
) -> None:
    read = openvino.Core().read_model(write(inputs, nodes, tmp_path))
    for node in read.get_ops():
        for output in node.outputs():
            assert all(dim.get_max_length() != -1 for dim in output.partial_shape), node


@pytest.mark.parametrize("inputs, nodes", OPEN)
def test_other_sizes_are_refused(inputs: str, nodes: str, tmp_path: Path) -> None:
    with pytest.raises(bridge.UnsupportedError, match="upper bound"):
        write(inputs, nodes, tmp_path)
