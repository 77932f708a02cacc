"""The conversion of floats to integers of 4 bits. The GPU plugin saturates, where ONNX keeps the
last bits."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import I4, I32, U4
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

IN_RANGE = frozenset({"Clip", "FakeQuantize"})
"""Operators whose results are in the range of the type, since they belong to a quantisation."""


def of_last_bits(b: Builder, node: Node, place: Place) -> Result:
    """The last 4 bits of the number in 32 bits."""
    x, like = node.inputs[0], node.input(1)
    to = node.attributes["to"] if like is None else like.element
    if x is None or x.element is None or not x.element.is_float or to not in (I4, U4):
        return None
    if x.producer is not None and x.producer.op in IN_RANGE:
        return None
    whole = b.cast(x, I32)
    bits = b.constant(15, I32)
    last = (
        b.op("BitwiseAnd", whole, bits)
        if to is U4
        else b.op("BitwiseAnd", whole + b.constant(8, I32), bits) - b.constant(8, I32)
    )
    return b.op("Cast", last, to=to)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Convert of -9 to i4 gives -8, and of 17 to u4 gives 15.",
    fires="At a Cast of floats to i4 or u4, unless it is behind a Clip or FakeQuantize.",
    safe="If the standard defines the result of the Cast, i32 can hold the number. Its last bits "
    "are the result.",
    cost="a Convert and a BitwiseAnd; for i4 an Add and a Subtract too. They stay on the way back",
    run=rewriting("Cast", "CastLike", by=of_last_bits),
)
