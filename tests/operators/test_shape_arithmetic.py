"""Knowledge at conversion about short integer vectors, symbols included, and about types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge.hooks  # noqa: F401, it registers what operators mean
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, F32, I32, I64, U8, Element, TensorType

KnownValue = tuple[int | str | None, ...]

# Operator, contents of its inputs (a tuple is a vector, anything else a scalar), the result.
CASES: list[tuple[str, list[Any], KnownValue | None]] = [
    ("Add", [(1, "n", None), (2, 0, 3)], (3, "n", None)),
    ("Sub", [("n", "n", 5), ("n", 0, 7)], (0, "n", -2)),
    ("Mul", [("n", "n", 0, None), (1, 2, "n", 0)], ("n", None, 0, 0)),
    ("Mul", [("n", 3), 1], ("n", 3)),
    ("Div", [(-7, 7, "n", 5), (2, -2, 1, 0)], (-3, -3, "n", None)),
    ("Mod", [(-7, 7), (3, -3)], (2, -2)),
    ("ir::Mod", [(-7, 7), (3, -3)], (-1, 1)),
    ("Max", [("n", 4, "n"), (0, 9, 2)], ("n", 9, None)),
    ("Min", [("n", 4), (-1, 9)], (-1, 4)),
    ("Neg", [(3, -2)], (-3, 2)),
    ("Equal", [(-1, "n", "n", "n"), (-1, -1, "n", 4)], (1, 0, 1, None)),
    ("Greater", [("n", 0), (-1, "n")], (1, None)),
    ("Where", [(1, 0, None), ("n", 2, 3), (4, "m", 3)], ("n", "m", 3)),
    ("ReduceProd", [(2, "n", 1)], (None,)),
    ("ReduceProd", [(2, 0, "n")], (0,)),
    ("ReduceSum", [(2, 3, 4)], (9,)),
    ("ReduceMax", [(2, 7, 4)], (7,)),
    ("CumSum", [(2, 3, 4), 0], (2, 5, 9)),
    ("Clip", [(-2, 3, 9), 0, 5], (0, 3, 5)),
    ("Floor", [(3, "n", None)], (3, "n", None)),
    ("Add", [(1, 2), (1, 2, 3)], None),
]


def known(content: Any) -> Value:
    items = content if isinstance(content, tuple) else (content,)
    value = Value(TensorType(I64, (len(items),) if isinstance(content, tuple) else ()))
    value.known_value = items
    return value


@pytest.mark.parametrize("op, inputs, expected", CASES)
def test_content(op: str, inputs: list[Any], expected: KnownValue | None) -> None:
    node = Builder([]).node(op, [known(content) for content in inputs])
    assert known_of(node.outputs[0]).parts == expected


M = np.arange(6).reshape(2, 3)
BEGIN = {"begin_mask": (0,), "end_mask": (0,), "new_axis_mask": (), "ellipsis_mask": ()}
MATRICES: list[tuple[str, list[Any], dict[str, Any], list[np.ndarray]]] = [
    ("Split", [M, None], {"axis": 0}, [M[:1], M[1:]]),
    ("Split", [M, [2, 1]], {"axis": 1}, [M[:, :2], M[:, 2:]]),
    ("ir::Split", [M, 0], {"num_splits": 2}, [M[:1], M[1:]]),
    ("VariadicSplit", [M, 1, [-1, 1]], {}, [M[:, :2], M[:, 2:]]),
    ("StridedSlice", [M, [0], [1], [1]], {**BEGIN, "shrink_axis_mask": ()}, [M[:1]]),
    ("StridedSlice", [M, [1], [2], [1]], {**BEGIN, "shrink_axis_mask": (1,)}, [M[1]]),
    ("Slice", [M, [1], [3], [1]], {}, [M[:, 1:3]]),
    ("Gather", [M, 1, 0], {}, [M[1]]),
    ("Concat", [M, M], {"axis": 1}, [np.concatenate([M, M], 1)]),
    ("Transpose", [M, [1, 0]], {}, [M.T]),
    ("Reshape", [M, [3, 2]], {}, [M.reshape(3, 2)]),
    ("Add", [M, M[0]], {}, [M + M[0]]),
    ("ReduceSum", [M, [1]], {"keepdims": False}, [M.sum(1)]),
    ("CumSum", [M, 0], {}, [M.cumsum(0)]),
    ("ScatterElements", [M, [[1]], [[9]], 0], {}, [np.array([[0, 1, 2], [9, 4, 5]])]),
    ("ScatterND", [M, [[1]], [[9, 9, 9]]], {}, [np.array([[0, 1, 2], [9, 9, 9]])]),
]
"""Operator, its inputs, attributes, and its results."""


@pytest.mark.parametrize("op, inputs, attributes, results", MATRICES)
def test_what_is_known_of_a_matrix_is_right(
    op: str, inputs: list[Any], attributes: dict[str, Any], results: list[np.ndarray]
) -> None:
    b = Builder([])
    given = [None if item is None else b.constant(item) for item in inputs]
    for made, result in zip(b.ops(op, len(results), *given, **attributes), results, strict=True):
        assert made.shape == result.shape
        assert made.known_value in (None, tuple(result.reshape(-1)))
        if "Split" in op:
            assert made.known_value is not None


def test_a_number_that_the_type_cannot_hold_is_not_known() -> None:
    b = Builder([])
    assert b.op("Mul", b.constant(200, U8), b.constant(2, U8)).known_value is None
    assert b.op("Cast", b.constant([300]), to=U8).known_value is None
    assert b.op("Cast", b.constant([300, 0]), to=BOOL).known_value == (1, 0)


X = TensorType(F32, ("n", 3, 4))
AXIS = np.array([1])
TYPES: list[tuple[Callable[[Builder, Value], Value], Element, tuple[Any, ...]]] = [
    (lambda b, x: b.op("Add", x, b.constant(1.0)), F32, ("n", 3, 4)),
    (lambda b, x: b.op("Less", x, b.constant(np.ones((5, 1, 1, 1), np.float32))), BOOL,
     (5, "n", 3, 4)),
    (lambda b, x: b.op("Cast", x, to=I32), I32, ("n", 3, 4)),
    (lambda b, x: b.op("ReduceMean", x, b.constant(AXIS), keepdims=False), F32, ("n", 4)),
    (lambda b, x: b.op("ReduceMean", x), F32, (1, 1, 1)),
    (lambda b, x: b.op("ReduceMean", x, noop_with_empty_axes=True), F32, ("n", 3, 4)),
    (lambda b, x: b.op("ArgMax", x, axis=-1, keepdims=False), I64, ("n", 3)),
    (lambda b, x: b.ops("TopK", 2, x, b.constant([2]), axis=1)[1], I64, ("n", 2, 4)),
    (lambda b, x: b.op("Where", b.op("IsNaN", x), x, b.constant(0.0)), F32, ("n", 3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("build, element, shape", TYPES)
def test_types(build: Any, element: Element, shape: tuple[Any, ...]) -> None:
    made = build(Builder([]), Value(X))
    assert (made.element, made.shape) == (element, shape)
