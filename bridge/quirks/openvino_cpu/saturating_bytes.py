"""Arithmetic on 8 bits. It saturates, and rounds quotients if shapes are dynamic."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I8, I32, U8
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting


def in_32_bits(b: Builder, node: Node, place: Place) -> Result:
    """The arithmetic in 32 bits. The conversion back keeps the last 8 bits."""
    x, y = node.inputs
    assert x is not None and y is not None
    if x.element not in (I8, U8):
        return None
    return b.cast(b.op(node.op, b.cast(x, I32), b.cast(y, I32), **node.attributes), x.element)


def in_eight_bits(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The arithmetic on integers of 8 bits, from the arithmetic in 32 bits."""
    to, inner = node.attributes["to"], node.inputs[0]
    made = uses.single_use(inner, "Add", "Div", "Mul", "Sub")
    if to not in (I8, U8) or made is None or inner is None or inner.element is not I32:
        return None
    wider = [uses.single_use(value, "Cast") for value in made.inputs]
    small = [None if cast is None else cast.inputs[0] for cast in wider]
    if any(value is None or value.element is not to for value in small):
        return None
    b.name = wider[0].name if wider[0] is not None else made.name
    return b.op(made.op, *small, **made.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="200 + 100 is 255 in u8, and 7 / 2 is 4 if the shape is dynamic.",
    fires="At an Add, a Div, a Mul or a Sub of u8 or i8.",
    safe="The last 8 bits of the 32-bit result are the result that wraps round. Quotients are the "
    "same.",
    cost="three Converts",
    run=rewriting("Add", "Div", "Mul", "Sub", by=in_32_bits),
    undo={"Cast": in_eight_bits},
)
