"""Comparisons and predicates that only one format has."""

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne

from bridge.neutral.inference import knows
from bridge.neutral.types import BOOL, STRING, SharedSymbol
from bridge.operators import Builder, Node, Refused, Result, legalizes
from bridge.operators.elementwise.known_values import Number, elementwise


@legalizes("NotEqual", target="onnx")
def not_equal(b: Builder, node: Node) -> Result:
    """NotEqual-1: not equal."""
    return ~b.op("Equal", *node.inputs)


@legalizes("Not", target="onnx")
def not_of_numbers(b: Builder, node: Node) -> Result:
    """LogicalNot-1 of numbers: 1 for 0, otherwise 0."""
    x = node.operand(0)
    if x.element in (None, BOOL):
        return None
    return b.cast(x.equal(0), x.element)


@legalizes("Equal", "Where", target="ir")
def strings(b: Builder, node: Node) -> Result:
    """Equal (1 to 19) and Where (9 to 16): IR cannot compare or select strings."""
    last = node.inputs[-1]
    if last is not None and last.element is STRING:
        raise Refused("IR neither compares nor selects strings")
    return None


@legalizes("IsFinite", target="onnx")
def is_finite(b: Builder, node: Node) -> Result:
    """IsFinite-10: neither infinite nor NaN."""
    (x,) = node.inputs
    return ~(b.op("IsInf", x) | b.op("IsNaN", x))


def _compare(
    function: Callable[[float, float], bool], same: bool, below: bool, above: bool
) -> Callable[..., Number]:
    """A comparison of numbers and symbols. `same` is its result for equal symbols. `below` is its
    result for a negative number and a symbol, and `above` for a symbol and a negative number."""

    def compare(a: Number, b: Number) -> Number:
        if a is None or b is None:
            return None
        if isinstance(a, int) and isinstance(b, int):
            return int(function(a, b))
        if a == b:
            return None if isinstance(a, SharedSymbol) else int(same)
        if isinstance(a, int) and a < 0:
            return int(below)
        return int(above) if isinstance(b, int) and b < 0 else None

    return compare


_COMPARISONS: dict[str, tuple[Callable[[float, float], bool], bool, bool, bool]] = {
    "Equal": (eq, True, False, False),
    "NotEqual": (ne, False, True, True),
    "Greater": (gt, False, False, True),
    "GreaterOrEqual": (ge, True, False, True),
    "Less": (lt, False, True, False),
    "LessOrEqual": (le, True, True, False),
}


@knows(*_COMPARISONS)
def content_of_comparison(node: Node) -> tuple[Number, ...] | None:
    """Equal, NotEqual, Greater(OrEqual), Less(OrEqual): 0 or 1; a symbol is equal to itself."""
    return elementwise(node, _compare(*_COMPARISONS[node.op]), *node.inputs)


@knows("Where")
def content_of_where(node: Node) -> tuple[Number, ...] | None:
    """Where: the element of the selected side, or the common element of both sides."""

    def pick(condition: Number, x: Number, y: Number) -> Number:
        if isinstance(condition, int):
            return x if condition else y
        return x if x == y else None

    return elementwise(node, pick, *node.inputs)
