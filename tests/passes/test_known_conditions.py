"""Ifs go when the inputs of their conditions are given, through any operators between."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import bridge
from bridge.passes.inputs import override_shapes
from bridge.pipeline import prepare
from bridge.report import Report
from tests.support.graphs import HEADER, context
from tests.support.running import OnnxRuntime

# How a condition c is computed from m (a vector or a scalar), or from the shape of x, [n, 4].
OF_VALUE: list[tuple[str, str, Any]] = [
    ("float m", "v = Div (m, two) c = Greater (v, one)", 2.5),
    ("float m", "v = Sqrt (m) c = Greater (v, one)", 2.5),
    ("float m", "v = Round (m) c = Equal (v, two)", 2.5),
    ("float m", "i = Cast <to = 7> (m) c = Equal (i, itwo)", 2.5),
    ("float m", "e = Exp (m) l = Log (e) f = Floor (l) c = Less (f, two)", 2.5),
    ("float m", "p = Pow (m, two) c = GreaterOrEqual (p, two)", 2.5),
    ("float[3] m", "v = ReduceMax <keepdims = 0> (m) c = Greater (v, two)", [1.0, 3.0, 2.0]),
    ("float[3] m", "v = ReduceMean <keepdims = 0> (m) c = Greater (v, two)", [1.0, 3.0, 2.0]),
    ("float[3] m", "i = ArgMax <axis = 0, keepdims = 0> (m) c = Equal (i, itwo)", [1.0, 3.0, 2.0]),
    ("float[3] m", "v = Gather <axis = 0> (m, itwo) c = Greater (v, one)", [1.0, 3.0, 2.0]),
    ("float[3] m", "v, i = TopK <axis = 0> (m, k) w = Squeeze (v) c = Greater (w, two)",
     [1.0, 3.0, 2.0]),
    ("float[2, 2] m", "v = MatMul (m, m) w = ReduceSum <keepdims = 0> (v) c = Less (w, one)",
     [[1.0, 2.0], [3.0, 4.0]]),
    ("int64[2, 2] m", "v = Transpose (m) w = ReduceMin <keepdims = 0> (v) c = Equal (w, itwo)",
     [[5, 2], [3, 4]]),
    ("bool[2] m", "v = Cast <to = 1> (m) w = ReduceMax <keepdims = 0> (v) c = Cast <to = 9> (w)",
     [False, True]),
    ("float[5000] m", "v = ReduceSum <keepdims = 0> (m) c = Greater (v, two)", [1.0] * 5000),
    ("int64[3000] m", "e = Equal (m, itwo) i = Cast <to = 7> (e) w = ReduceMax <keepdims = 0> (i) "
     "c = Cast <to = 9> (w)", list(range(3000))),
]  # fmt: skip
OF_SHAPE = [
    "s = Shape (x) d = Gather (s, izero) f = Cast <to = 1> (d) v = Mul (f, half) "
    "c = Greater (v, two)",
    "s = Size (x) f = Cast <to = 1> (s) v = Sqrt (f) w = Ceil (v) i = Cast <to = 7> (w) "
    "c = Equal (i, itwo)",
]


def model(given: str, condition: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""{HEADER} g (float[n, 4] x{given}) => (float[n, 4] y)
    <float one = {{1}}, float two = {{2}}, float half = {{0.5}}, int64 itwo = {{2}},
     int64 izero = {{0}}, int64[1] k = {{1}}> {{
        {condition}
        y = If (c) <
          then_branch = t () => (float[n, 4] a) {{ a = Relu (x) }},
          else_branch = f () => (float[n, 4] b) {{ b = Neg (x) }}
        >
    }}""")


X = np.linspace(-1, 1, 36, dtype=np.float32).reshape(9, 4)
TYPES = {"float": np.float32, "int64": np.int64, "bool": np.bool_}


def assert_decided(made: onnx.ModelProto, original: onnx.ModelProto, **given: Any) -> None:
    """One branch is left: the branch that onnxruntime runs."""
    (expected,) = OnnxRuntime(original).run({"x": X, **given})
    (result,) = OnnxRuntime(made).run({"x": X})
    assert [node.op_type for node in made.graph.node] in (["Relu"], ["Neg"])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("declared, condition, value", OF_VALUE)
def test_an_if_goes_when_what_decides_it_is_given(
    declared: str, condition: str, value: Any
) -> None:
    original = model(f", {declared}", condition)
    array = np.array(value, TYPES[declared.partition(" ")[0].partition("[")[0]])
    assert_decided(bridge.to_onnx(original, values={"m": value}), original, m=array)


@pytest.mark.parametrize("condition", OF_SHAPE)
def test_an_if_goes_when_the_shape_that_decides_it_is_given(condition: str) -> None:
    original = model("", condition)
    assert_decided(bridge.to_onnx(original, input_shapes={"x": [9, 4]}), original)


def test_an_if_in_a_branch_goes_with_what_it_captures() -> None:
    text = model(", float m", "c = Greater (m, one)")
    inner = text.graph.node[1].attribute[0].g
    outer = onnx.parser.parse_graph("""outer () => (float[n, 4] a2) {
        v = Sqrt (m) c2 = Greater (v, two) a2 = Identity (x) }""")
    outer.node[2].CopyFrom(
        onnx.helper.make_node("If", ["c2"], ["a2"], then_branch=inner, else_branch=inner)
    )
    text.graph.node[1].attribute[0].g.CopyFrom(outer)
    assert_decided(bridge.to_onnx(text, values={"m": 9.0}), text, m=np.array(9, np.float32))


def test_an_if_of_a_branch_that_fails_is_not_counted_as_left() -> None:
    text = onnx.parser.parse_model(f"""{HEADER}
    g (float[n, k] x, bool c, int64 q) => (float[n, j] y)
    <float[2, 2] w = {{1, 2, 3, 4}}, int64 one = {{1}}> {{
        y = If (c) <
          then_branch = t () => (float[n, j] a) {{
            p = MatMul (x, w)
            d = Equal (q, one)
            a = If (d) <
              then_branch = tt () => (float[n, j] r) {{ r = Relu (p) }},
              else_branch = te () => (float[n, j] s) {{ s = Neg (p) }}
            >
          }},
          else_branch = f () => (float[n, j] b) {{ b = Exp (x) }}
        >
    }}""")
    loaded = bridge.load(text)
    report = Report()
    made = context("ir", report=report, input_shapes={"x": [2, 3]})
    override_shapes(loaded, {"x": [2, 3]})
    prepare(loaded, made)
    assert report.specialized == ["no If is left"]


def test_a_matrix_decides_an_if() -> None:
    original = model(", float[20, 20] m", "v = ReduceMean <keepdims = 0> (m) c = Less (v, one)")
    m = np.full((20, 20), 0.5, np.float32)
    assert_decided(bridge.to_onnx(original, values={"m": m}), original, m=m)
