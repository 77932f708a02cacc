"""Which integers cannot be negative, as far as the nodes that make them tell."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_integers
from bridge.neutral.ports import Invariant, Yield
from bridge.vocabulary import has_trait


def is_not_negative(value: Value | None, depth: int = 8) -> bool:
    """Whether no element can be negative; `depth` bounds how many nodes back it looks."""
    if value is None:
        return False
    content, producer = value.content, value.producer
    if content is not None and None not in content:
        # A symbol stands for the size of an axis.
        return all(isinstance(x, str) or (x is not None and x >= 0) for x in content)
    if producer is None or depth == 0:
        return False
    if has_trait(producer.op, "not_negative"):
        return True
    if producer.op == "If":
        place = producer.outputs.index(value)
        return all(is_not_negative(v, depth - 1) for v in _given(producer, place))
    if _replaces_negative(producer):
        return is_not_negative(producer.inputs[1], depth - 1)
    chosen = producer.inputs[1:] if producer.op == "Where" else producer.inputs
    parts = (is_not_negative(v, depth - 1) for v in chosen)
    if producer.op == "Max":
        return any(parts)
    if has_trait(producer.op, "not_negative_of_all"):
        return all(parts)
    return has_trait(producer.op, "elements_of_first") and next(parts)


def _replaces_negative(node: Node) -> bool:
    """Whether a node is Where(x < 0, y, x)."""
    asked = node.inputs[0].producer if node.op == "Where" and node.inputs[0] is not None else None
    if asked is None or asked.op != "Less" or asked.inputs[0] is not node.inputs[2]:
        return False
    return known_integers(asked.inputs[1]) == (0,)


def _given(node: Node, place: int) -> Iterator[Value | None]:
    """What the branches of an If give for an output; what they hand through, as it is outside."""
    for body in node.bodies:
        captured = {
            value: node.inputs[port.input]
            for value, port in body.entries()
            if isinstance(port, Invariant)
        }
        for value, exit in body.exits():
            if exit == Yield(place):
                yield captured.get(value, value)
