"""Arithmetic on values: the nodes that formulas make, and their graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import bridge.hooks  # noqa: F401 (it registers the operators)
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import BOOL, F32, I64, Element, TensorType

Formula = Callable[[Value, Value], Value]

# A formula of two vectors, their type, and the operators of the nodes, in order.
CASES: list[tuple[Formula, Element, str]] = [
    (lambda x, y: (x - y) * x / (y - 1.0), F32, "Sub Mul Constant Sub Div"),
    (lambda x, y: 1.0 - abs(-x) ** 2, F32, "Neg Abs Constant Pow Constant Sub"),
    (lambda x, y: x % y + [1, 2], I64, "Mod Constant Add"),
    (lambda x, y: np.array([1, 2], np.float32) * x, F32, "Constant Mul"),
    (lambda x, y: np.float32(2) / x, F32, "Constant Div"),
    (lambda x, y: [1.0, 2.0] - y, F32, "Constant Sub"),
    (lambda x, y: (x < y) | (x >= 0), F32, "Less Constant GreaterOrEqual Or"),
    (lambda x, y: (x <= y) ^ ~(x > y), F32, "LessOrEqual Greater Not Xor"),
    (lambda x, y: x.equal(y) & x.equal(0), I64, "Equal Constant Equal And"),
    (lambda x, y: x & y, BOOL, "And"),
    (lambda x, y: x[1], I64, "Constant Constant Gather"),
    (lambda x, y: x[1:], I64, "Constant Constant Constant Slice"),
    (lambda x, y: x[: y[1:2]], I64, "Constant Constant Constant Slice Constant Constant Slice"),
]


@pytest.mark.parametrize(("formula", "element", "ops"), CASES)
def test_nodes(formula: Formula, element: Element, ops: str) -> None:
    x, y = (Value(TensorType(element, (2,))) for _ in range(2))
    with Builder([]) as builder:
        made = formula(x, y)
    assert [node.op for node in builder.nodes] == ops.split()
    assert made.producer is builder.nodes[-1]
    # A number has the type of the other operand.
    assert all(n.outputs[0].element in (element, I64) for n in builder.nodes if n.op == "Constant")


def test_the_innermost_builder_makes_the_nodes() -> None:
    x = Value(TensorType(F32, (2,)))
    with Builder([]) as outer:
        with Builder([]) as inner:
            inside = x + x
        outside = x - x
    assert [inside.producer, outside.producer] == [inner.nodes[0], outer.nodes[0]]


def test_outside_of_any_builder() -> None:
    x = Value(TensorType(F32, (2,)))
    with pytest.raises(RuntimeError, match="outside of any builder"):
        x + x


def test_a_builder_that_is_not_the_current_one() -> None:
    def twice(b: Builder, x: Value) -> Value:
        return x + x

    with Builder([]), pytest.raises(RuntimeError, match="not the current builder"):
        twice(Builder([]), Value(TensorType(F32, (2,))))


def test_values_are_compared_by_identity_and_not_run_through() -> None:
    x, y = (Value(TensorType(F32, (2,))) for _ in range(2))
    assert x == x != y and x in [y, x]
    with pytest.raises(TypeError):
        list(x)
    with pytest.raises(TypeError):
        _ = y in x
