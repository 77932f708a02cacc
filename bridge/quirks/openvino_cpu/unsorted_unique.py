"""Unique elements in order of occurrence.

Without an axis, the CPU plugin gives 0 for all elements but the first. It does not if a node reads
the inverse indices. Along an axis of 8-bit values, it writes only a quarter of the counts and of
the first indices.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import I8, I32, U8
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def along_an_axis(b: Builder, node: Node, place: Place) -> Result:
    """The operator along the only axis of a vector. Values of 8 bits are converted to i32 and
    back."""
    value, axis = node.inputs[0], node.input(1)
    if value is None or node.attributes["sorted"]:
        return None
    is_bytes = value.element in (I8, U8)
    if axis is not None and not is_bytes:
        return None
    data = value if axis is not None or value.rank == 1 else b.reshape(value, -1)
    axis = axis or b.constant(0)
    wide = b.cast(data, I32) if is_bytes else data
    some, *others = b.ops("Unique", len(node.outputs), wide, axis, **node.attributes)
    return [b.cast(some, value.element), *others]


QUIRK = Quirk(
    releases="2026.4",
    symptom="Unique without an axis, in order of occurrence, gives 0 for all elements but the "
    "first, unless a node reads the inverse indices. Along an axis, most of the counts and first "
    "indices of i8 or u8 are not written.",
    fires="At a Unique in order of occurrence, without an axis or of i8 or u8.",
    safe="Unique without an axis flattens the tensor, and a vector along its only axis is the "
    "same. i32 has all numbers of 8 bits, and the result is converted back.",
    cost="a Reshape, which copies nothing, or two Converts",
    run=rewriting("Unique", by=along_an_axis),
)
