"""The comparisons that make a condition true, and the distance of an input from them.

A condition is taken apart backwards, through its logic, down to the numbers that are compared. The
distance of these numbers from the wanted outcome is the branch distance of search-based testing
(B. Korel, "Automated software test data generation", 1990; N. Tracey et al., 1998). The distance
is 0 for the wanted outcome, and smaller if the numbers are nearer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL, TensorType


@dataclass(frozen=True)
class NonZero:
    """True where a number or truth value is not zero."""

    value: Value


@dataclass(frozen=True)
class Predicate:
    """Two values, compared element by element; `op` is a key of `_DISTANCES`."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Negation:
    """True where `part` is false."""

    part: Truth


@dataclass(frozen=True)
class Junction:
    """Two truths joined; `op` is And, Or or Xor."""

    op: str
    left: Truth
    right: Truth


@dataclass(frozen=True)
class Quantified:
    """Whether all elements of `part` are true, or some of them are."""

    every: bool
    part: Truth


Truth = NonZero | Predicate | Negation | Junction | Quantified

Resolve = Callable[[Value], Value]
"""Gives the source of a value while a condition is taken apart. The source of a body's input is the
captured value."""

_DEEPEST = 40  # junctions, in one another, that are taken apart


def truth_of(condition: Value, resolve: Resolve) -> Truth:
    """The truth that a condition computes, as far as its logic can be followed."""
    return _truth(condition, resolve, _DEEPEST)


def _truth(value: Value, resolve: Resolve, depth: int) -> Truth:
    value = resolve(value)
    node = value.producer
    inputs = [v for v in node.inputs if v is not None] if node is not None else []
    if node is None or not inputs or not depth:
        return NonZero(value)

    def part(index: int = 0) -> Truth:
        return _truth(inputs[index], resolve, depth - 1)

    if node.op in _DISTANCES and len(inputs) == 2:
        return Predicate(node.op, resolve(inputs[0]), resolve(inputs[1]))
    if node.op in ("And", "Or", "Xor") and len(inputs) == 2:
        return Junction(node.op, part(0), part(1))
    if node.op == "Not":
        return Negation(part())
    if (node.op == "Cast" and value.element is BOOL) or node.op in _SAME_ELEMENTS:
        return part()
    if node.op in _REDUCTIONS and _from_truths(node, inputs[0], resolve):
        return Quantified(_REDUCTIONS[node.op], part())
    return NonZero(value)


_SAME_ELEMENTS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
_REDUCTIONS = {
    **dict.fromkeys(("ReduceMin", "ReduceProd", "ReduceLogicalAnd"), True),
    **dict.fromkeys(("ReduceMax", "ReduceSum", "ReduceLogicalOr"), False),
}


def _from_truths(node: Node, value: Value, resolve: Resolve) -> bool:
    """Whether a reduction over all axes is one of truth values, cast to numbers or not."""
    if not (isinstance(node.outputs[0].type, TensorType) and _one(node.outputs[0])):
        return False
    value = resolve(value)
    while value.element is not BOOL and value.producer is not None and value.producer.op == "Cast":
        first = value.producer.inputs[0]
        assert first is not None
        value = resolve(first)
    return value.element is BOOL


def _one(value: Value) -> bool:
    return value.shape is not None and all(dim == 1 for dim in value.shape)


def operands(truth: Truth) -> Iterator[Value]:
    """The values that a truth is computed from."""
    match truth:
        case NonZero():
            yield truth.value
        case Predicate():
            yield from (truth.left, truth.right)
        case Negation() | Quantified():
            yield from operands(truth.part)
        case Junction():
            yield from operands(truth.left)
            yield from operands(truth.right)


def distance(truth: Truth, wanted: bool, values: Mapping[Value, np.ndarray]) -> float:
    """How far a condition, with these values of its operands, is from being true (or false)."""
    with np.errstate(all="ignore"):
        found = _distance(truth, wanted, values)
        total = float(np.sum(np.where(np.isnan(found), np.inf, found)))
    return total


def _distance(truth: Truth, wanted: bool, values: Mapping[Value, np.ndarray]) -> np.ndarray:
    match truth:
        case NonZero():
            array = values[truth.value]
            other = np.zeros((), array.dtype) if array.dtype.kind != "O" else np.array("", object)
            return _compared("NotEqual", wanted, array, other)
        case Predicate():
            return _compared(truth.op, wanted, values[truth.left], values[truth.right])
        case Negation():
            return _distance(truth.part, not wanted, values)
        case Quantified():
            parts = _distance(truth.part, wanted, values)
            if not parts.size:
                return np.array(float(truth.every != wanted))
            # If all parts must be as wanted, each part counts. Otherwise the nearest part counts.
            return np.asarray(np.sum(parts) if truth.every == wanted else np.min(parts))
        case Junction():
            left, right = (
                (_distance(part, True, values), _distance(part, False, values))
                for part in (truth.left, truth.right)
            )
            if truth.op == "Xor":
                same = left[0] + right[0], left[1] + right[1]
                unlike = left[0] + right[1], left[1] + right[0]
                return np.asarray(np.minimum(*(unlike if wanted else same)))
            both = (truth.op == "And") == wanted
            index = 0 if wanted else 1
            one, other = left[index], right[index]
            return np.asarray(np.add(one, other) if both else np.minimum(one, other))


def _compared(op: str, wanted: bool, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    name = op if wanted else OPPOSITES[op]
    if any(array.dtype.kind in "OSU" for array in (left, right)):
        same = np.asarray(left == right, bool)
        return np.where(same == (name == "Equal"), 0.0, 1.0)
    a, b = left.astype(np.float64), right.astype(np.float64)
    # Engines round floats differently, and rounding must not decide which branch they take.
    exact = all(array.dtype.kind in "biu" for array in (left, right))
    margin = 0.0 if exact else _MARGIN * np.maximum(np.abs(a), np.abs(b)) + 1e-6
    return np.asarray(_DISTANCES[name](a, b, margin))


_MARGIN = 1e-4
"""The least distance between compared floats, relative to their size."""

Far = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]

_DISTANCES: dict[str, Far] = {
    "Equal": lambda a, b, margin: np.where(a == b, 0.0, np.abs(a - b)),
    "NotEqual": lambda a, b, margin: np.where(np.abs(a - b) > margin, 0.0, 1.0),
    "Less": lambda a, b, margin: np.where(a < b - margin, 0.0, a - b + margin + 1),
    "LessOrEqual": lambda a, b, margin: np.where(a <= b - margin, 0.0, a - b + margin),
    "Greater": lambda a, b, margin: np.where(a > b + margin, 0.0, b - a + margin + 1),
    "GreaterOrEqual": lambda a, b, margin: np.where(a >= b + margin, 0.0, b - a + margin),
}
