"""Which integers cannot be negative, as far as the nodes that make them tell."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Invariant, Yield

_NOT_NEGATIVE = {"Abs", "NonZero", "Shape", "Size"}
"""Operators whose result is not negative whatever the inputs are."""

_ALL_INPUTS = {"Add", "Concat", "Div", "Min", "Mul"}
"""Operators whose result is not negative where no input is."""

_FIRST_INPUT = {
    "Cast", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze",
}  # fmt: skip
"""Operators whose elements are those of input 0; the other inputs are axes and shapes."""


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
    if producer.op in _NOT_NEGATIVE:
        return True
    if producer.op == "If":
        place = producer.outputs.index(value)
        return all(is_not_negative(v, depth - 1) for v in _given(producer, place))
    parts = (is_not_negative(v, depth - 1) for v in producer.inputs)
    if producer.op == "Max":
        return any(parts)
    if producer.op in _ALL_INPUTS:
        return all(parts)
    return producer.op in _FIRST_INPUT and next(parts)


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
