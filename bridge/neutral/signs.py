"""Which integers cannot be negative, as far as the nodes that make them tell."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.dataflow import Facts, Must
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import is_at_least_zero, known_of
from bridge.vocabulary import has_trait

MOST_NODES = 500
"""The most nodes that are visited to find whether a value may be negative."""


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
    made, op = condition.producer if condition is not None else None, "GreaterOrEqual"
    if made is not None and made.op == "Not":
        made, op = made.inputs[0].producer if made.inputs[0] is not None else None, "Less"
    if made is None or made.op != op or made.inputs[0] is not value:
        return False
    return known_of(made.inputs[1]).ints == (0,)


def replaces_negative(node: Node) -> bool:
    """Whether a node is Where(x < 0, y, x)."""
    asked = node.inputs[0].producer if node.op == "Where" and node.inputs[0] is not None else None
    if asked is None or asked.op != "Less" or asked.inputs[0] is not node.inputs[2]:
        return False
    return known_of(asked.inputs[1]).ints == (0,)
