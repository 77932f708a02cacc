"""Which integers cannot be negative, as far as the nodes that make them tell."""

from collections.abc import Sequence

from bridge.neutral.dataflow import Facts, Must
from bridge.neutral.graph import Node, Value, operand_of, producer_of
from bridge.neutral.inference.known import is_at_least_zero, known_of
from bridge.vocabulary import has_trait

MOST_NODES = 500
"""The most nodes to visit for the sign of a value."""


def is_not_negative(value: Value | None) -> bool:
    """Whether no element can be negative."""
    return value is not None and Facts(NotNegative(), most=MOST_NODES).of(value)


class NotNegative(Must):
    """Whether no element of a value can be negative."""

    def outside(self, value: Value) -> bool:
        """Inputs may be negative."""
        return False

    def settled(self, value: Value, fact: bool) -> bool:
        """The sign follows from the known elements; a symbol is the size of an axis."""
        known = value.known_value
        if known is None or None in known:
            return fact
        return all(map(is_at_least_zero, known))

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """Whether a node makes no negative number."""
        return [_makes_none(node, [bool(fact) for fact in facts])] * len(node.outputs)


def _makes_none(node: Node, facts: list[bool]) -> bool:
    """Whether a node gives no negative number if the inputs marked true have none."""
    if has_trait(node.op, "not_negative"):
        return True
    if node.op == "Where":
        return facts[1] and (facts[2] or replaces_negative(node))
    if node.op == "Compress" and _asks_for(node.inputs[1], node.inputs[0]):
        return True
    if node.op == "Max":
        return any(facts)
    if node.op == "Pad":
        return facts[0] and (node.input(2) is None or facts[2])
    if has_trait(node.op, "not_negative_of_all"):
        return all(facts)
    return has_trait(node.op, "elements_of_first") and facts[0]


def _asks_for(condition: Value | None, value: Value | None) -> bool:
    """Whether a condition is that elements are not negative: x >= 0, or not x < 0."""
    less = producer_of(operand_of(condition, "Not"), "Less")
    compared = less or producer_of(condition, "GreaterOrEqual")
    return compared is not None and _with_zero(compared, value)


def replaces_negative(node: Node) -> bool:
    """Whether a node is Where(x < 0, y, x)."""
    less = producer_of(node.inputs[0], "Less") if node.op == "Where" else None
    return less is not None and _with_zero(less, node.inputs[2])


def _with_zero(comparison: Node, value: Value | None) -> bool:
    """Whether a comparison is of a value with 0."""
    first, second = comparison.inputs
    return first is value and known_of(second).ints == (0,)
