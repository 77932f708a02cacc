"""The conversion of floats to unsigned integers of 8 bits or fewer, which saturates in bodies and
where shapes are dynamic, and wraps round elsewhere, as ONNX does."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I32, U4, U8, is_static
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting

IN_RANGE = {"Clip", "FakeQuantize"}
"""What makes numbers that are in the range: they come from a quantisation."""


def by_32_bits(b: Builder, node: Node, place: Place) -> Result:
    """By way of i32, whose last bits are taken."""
    x, like = node.inputs[0], node.input(1)
    to = node.attributes["to"] if like is None else like.element
    if x is None or x.element is None or not x.element.is_float:
        return None
    if to not in (U4, U8) or (place.body is None and is_static(x.shape)):
        return None
    if x.producer is not None and x.producer.op in IN_RANGE:
        return None
    return b.op("Cast", b.op("Cast", x, to=I32), to=to)


def at_once(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The conversion of floats that is done by way of i32."""
    inner = node.inputs[0]
    made = uses.single_use(inner, "Cast")
    if node.attributes["to"] is not U8 or made is None or made.attributes["to"] is not I32:
        return None
    x = made.inputs[0]
    if x is None or x.element is None or not x.element.is_float:
        return None
    b.name = made.name
    return b.op("Cast", x, **node.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Convert of a negative float to u8 or u4 gives 0 in a body or with a dynamic shape, "
    "and wraps round elsewhere.",
    fires="At a Cast of floats to u8 or u4 in a body or of open shape, but behind a Clip or "
    "FakeQuantize.",
    safe="i32 has all whole numbers of which the standard says what the Cast gives, and their "
    "last bits are these.",
    cost="another Convert",
    run=rewriting("Cast", "CastLike", by=by_32_bits),
    undo={"Cast": at_once},
)
