"""The conversion of floats to unsigned integers of 8 bits or fewer.

It saturates in bodies and with dynamic shapes. Elsewhere it wraps round, like in ONNX.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I32, U4, U8, is_static
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting

IN_RANGE = {"Clip", "FakeQuantize"}
"""Operators whose results are in the range of the type, since they belong to a quantisation."""


def by_32_bits(b: Builder, node: Node, place: Place) -> Result:
    """The conversion to i32 first. The second conversion keeps the last bits."""
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
    """The direct conversion, from the conversion through i32."""
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
    symptom="A Convert of a negative float to u8 or u4 gives 0 in a body or with a dynamic shape. "
    "Elsewhere it wraps round.",
    fires="At a Cast of floats to u8 or u4 in a body or of open shape, unless it is behind a Clip "
    "or FakeQuantize.",
    safe="If the standard defines the result of the Cast, i32 can hold the number. Its last bits "
    "are the result.",
    cost="another Convert",
    run=rewriting("Cast", "CastLike", by=by_32_bits),
    undo={"Cast": at_once},
)
