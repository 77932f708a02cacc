"""The distance of an input from what a condition is to be.

A condition is taken apart backwards, through its logic, down to the numbers that are compared. The
distance of these numbers from the wanted outcome is the branch distance of search-based testing
(B. Korel, "Automated software test data generation", 1990; N. Tracey et al., 1998). The distance
is 0 for the wanted outcome, and smaller if the numbers are nearer.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL

_DEEPEST = 40  # logic, in one another, that is taken apart
_MARGIN = 1e-4  # the least distance between compared floats, relative to their size

_JOINS = frozenset({"And", "Or", "Xor"})
_SAME_ELEMENTS = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
_EVERY = frozenset({"ReduceMin", "ReduceProd", "ReduceLogicalAnd"})
_SOME = frozenset({"ReduceMax", "ReduceSum", "ReduceLogicalOr"})

Far = Callable[[np.ndarray, np.ndarray, Any], np.ndarray]

_COMPARISONS: dict[str, Far] = {
    "Equal": lambda a, b, margin: np.where(a == b, 0.0, np.abs(a - b)),
    "NotEqual": lambda a, b, margin: np.where(np.abs(a - b) > margin, 0.0, 1.0),
    "Less": lambda a, b, margin: np.where(a < b - margin, 0.0, a - b + margin + 1),
    "LessOrEqual": lambda a, b, margin: np.where(a <= b - margin, 0.0, a - b + margin),
    "Greater": lambda a, b, margin: np.where(a > b + margin, 0.0, b - a + margin + 1),
    "GreaterOrEqual": lambda a, b, margin: np.where(a >= b + margin, 0.0, b - a + margin),
}


def compared(condition: Value, depth: int = _DEEPEST) -> Iterator[Value]:
    """The values that a condition compares, as far as its logic can be followed."""
    kind, parts = _logic(condition, depth)
    if kind == "NonZero" or kind in _COMPARISONS:
        yield from parts
    else:
        for part in parts:
            yield from compared(part, depth - 1)


def distance(condition: Value, wanted: bool, values: Mapping[Value, np.ndarray]) -> float:
    """How far a condition, with these values that it compares, is from being true (or false)."""
    with np.errstate(all="ignore"):
        found = _far(condition, wanted, values, _DEEPEST)
        return float(np.sum(np.where(np.isnan(found), np.inf, found)))


def _logic(value: Value, depth: int) -> tuple[str, list[Value]]:
    """What a condition is, and its parts. "NonZero" is true where a number is not zero."""
    node = value.producer
    parts = [v for v in node.inputs if v is not None] if node is not None else []
    if node is None or not parts or not depth:
        return "NonZero", [value]
    if (node.op in _COMPARISONS or node.op in _JOINS) and len(parts) == 2:
        return node.op, parts
    if node.op == "Not":
        return "Not", parts
    if (node.op == "Cast" and value.element is BOOL) or node.op in _SAME_ELEMENTS:
        return "Same", parts[:1]
    if node.op in _EVERY | _SOME and _joins_truths(node, parts[0]):
        return "Every" if node.op in _EVERY else "Some", parts[:1]
    return "NonZero", [value]


def _joins_truths(node: Node, value: Value) -> bool:
    """Whether a reduction over all axes is one of truth values, cast to numbers or not."""
    shape = node.outputs[0].shape
    is_one = shape is not None and all(dim == 1 for dim in shape)
    source = value if value.element is BOOL else value.behind("Cast", "Identity")
    return is_one and source.element is BOOL


def _far(value: Value, wanted: bool, values: Mapping[Value, np.ndarray], depth: int) -> np.ndarray:
    kind, parts = _logic(value, depth)

    def far(part: Value, wanted: bool) -> np.ndarray:
        return _far(part, wanted, values, depth - 1)

    if kind == "NonZero":
        array = values[value]
        zero = np.zeros((), array.dtype) if array.dtype.kind != "O" else np.array("", object)
        return _numbers_far("NotEqual" if wanted else "Equal", array, zero)
    if kind in _COMPARISONS:
        return _numbers_far(kind if wanted else OPPOSITES[kind], *(values[part] for part in parts))
    if kind in ("Not", "Same"):
        return far(parts[0], wanted != (kind == "Not"))
    if kind in ("Every", "Some"):
        found = far(parts[0], wanted)
        if not found.size:
            return np.array(float((kind == "Every") != wanted))
        # If all parts must be as wanted, each part counts. Otherwise the nearest part counts.
        return np.asarray(np.sum(found) if (kind == "Every") == wanted else np.min(found))
    left, right = parts
    if kind == "Xor":
        ways = (far(left, way) + far(right, way != wanted) for way in (True, False))
        return np.asarray(np.minimum(*ways))
    both = (kind == "And") == wanted
    return np.asarray((np.add if both else np.minimum)(far(left, wanted), far(right, wanted)))


def _numbers_far(comparison: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if any(array.dtype.kind in "OSU" for array in (left, right)):
        same = np.asarray(left == right, bool)
        return np.where(same == (comparison == "Equal"), 0.0, 1.0)
    a, b = left.astype(np.float64), right.astype(np.float64)
    # Engines round floats differently, and rounding must not decide which branch they take.
    exact = all(array.dtype.kind in "biu" for array in (left, right))
    margin = 0.0 if exact else _MARGIN * np.maximum(np.abs(a), np.abs(b)) + 1e-6
    return np.asarray(_COMPARISONS[comparison](a, b, margin))
