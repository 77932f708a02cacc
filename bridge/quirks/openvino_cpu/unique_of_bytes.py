"""Unique elements of 8 bits along an axis, in order of occurrence: the CPU plugin writes a quarter
of the counts, and of the places of first occurrence."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import I8, I32, U8
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_words(b: Builder, node: Node, place: Place) -> Result:
    """The operator of i32, and its elements converted back."""
    value, axis = node.inputs[0], node.input(1)
    if value is None or axis is None or node.attributes["sorted"]:
        return None
    if value.element not in (I8, U8):
        return None
    wide = b.cast(value, I32)
    some, *others = b.ops("Unique", len(node.outputs), wide, axis, **node.attributes)
    return [b.cast(some, value.element), *others]


QUIRK = Quirk(
    releases="2026.4",
    symptom="Unique of i8 or u8 along an axis, in order of occurrence, gives counts, and places of "
    "first occurrence, most of which were not written.",
    fires="At a Unique of i8 or u8 along an axis, in order of occurrence.",
    safe="i32 has all these numbers; they are converted back.",
    cost="two Converts",
    run=rewriting("Unique", by=of_words),
)
