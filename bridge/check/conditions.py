"""The comparisons that make a condition true, and the distance of an input from them.

A condition is taken apart backwards, through its logic, down to the numbers that are compared. The
distance of these numbers from the wanted outcome is the branch distance of search-based testing
(B. Korel, "Automated software test data generation", 1990; N. Tracey et al., 1998). The distance
is 0 for the wanted outcome, and smaller if the numbers are nearer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Value
from bridge.neutral.types import BOOL

Far = Callable[[bool, Mapping[Value, np.ndarray]], np.ndarray]
"""How far each element is from the wanted outcome, with these contents of the operands."""


@dataclass(frozen=True)
class Truth:
    """The truth that a condition computes from its `operands`."""

    operands: tuple[Value, ...]
    far: Far


def non_zero(value: Value) -> Truth:
    """True where a number, a text or a truth value is not zero or empty."""

    def far(wanted: bool, values: Mapping[Value, np.ndarray]) -> np.ndarray:
        array = values[value]
        zero = np.zeros((), array.dtype) if array.dtype.kind != "O" else np.array("", object)
        return _far("NotEqual" if wanted else "Equal", array, zero)

    return Truth((value,), far)


def compared(op: str, left: Value, right: Value) -> Truth:
    """Two values, compared element by element. `op` is a key of `_DISTANCES`."""
    return Truth(
        (left, right),
        lambda wanted, values: _far(op if wanted else OPPOSITES[op], values[left], values[right]),
    )


def negated(part: Truth) -> Truth:
    """True where `part` is false."""
    return Truth(part.operands, lambda wanted, values: part.far(not wanted, values))


def joined(op: str, left: Truth, right: Truth) -> Truth:
    """Two truths joined; `op` is And, Or or Xor."""
    if op == "Xor":
        unlike = joined("And", left, negated(right)), joined("And", negated(left), right)
        return joined("Or", *unlike)

    def far(wanted: bool, values: Mapping[Value, np.ndarray]) -> np.ndarray:
        join = np.add if (op == "And") == wanted else np.minimum
        return np.asarray(join(left.far(wanted, values), right.far(wanted, values)))

    return Truth((*left.operands, *right.operands), far)


Resolve = Callable[[Value], Value]
"""Gives the source of a value while a condition is taken apart. The source of a body's input is the
captured value."""

_DEEPEST = 40  # junctions, in one another, that are taken apart


def truth_of(condition: Value, resolve: Resolve, depth: int = _DEEPEST) -> Truth:
    """The truth that a condition computes, as far as its logic can be followed."""
    value = resolve(condition)
    node = value.producer
    inputs = [v for v in node.inputs if v is not None] if node is not None else []
    if node is None or not inputs or not depth:
        return non_zero(value)

    def part(index: int = 0) -> Truth:
        return truth_of(inputs[index], resolve, depth - 1)

    if node.op in _DISTANCES and len(inputs) == 2:
        return compared(node.op, resolve(inputs[0]), resolve(inputs[1]))
    if node.op in ("And", "Or", "Xor") and len(inputs) == 2:
        return joined(node.op, part(0), part(1))
    if node.op == "Not":
        return negated(part())
    if (node.op == "Cast" and value.element is BOOL) or node.op in _SAME_ELEMENTS:
        return part()
    return non_zero(value)


_SAME_ELEMENTS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})


def distance(truth: Truth, wanted: bool, values: Mapping[Value, np.ndarray]) -> float:
    """How far a condition, with these values of its operands, is from being true (or false)."""
    with np.errstate(all="ignore"):
        found = truth.far(wanted, values)
        return float(np.sum(np.where(np.isnan(found), np.inf, found)))


def _far(name: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
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

_DISTANCES: dict[str, Callable[[np.ndarray, np.ndarray, Any], np.ndarray]] = {
    "Equal": lambda a, b, margin: np.where(a == b, 0.0, np.abs(a - b)),
    "NotEqual": lambda a, b, margin: np.where(np.abs(a - b) > margin, 0.0, 1.0),
    "Less": lambda a, b, margin: np.where(a < b - margin, 0.0, a - b + margin + 1),
    "LessOrEqual": lambda a, b, margin: np.where(a <= b - margin, 0.0, a - b + margin),
    "Greater": lambda a, b, margin: np.where(a > b + margin, 0.0, b - a + margin + 1),
    "GreaterOrEqual": lambda a, b, margin: np.where(a >= b + margin, 0.0, b - a + margin),
}
