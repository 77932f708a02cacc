"""A conversion to bool: old releases of the CPU plugin convert to u8.

A number other than 0 and 1 then stays in the u8, and a later conversion reads it.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL, I8, I16, I32, I64, U8, U16, U32, U64
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

COMPARED = {I8, I16, I32, I64, U8, U16, U32, U64}
"""Types that the plugin compares. Floats have a second reason, NaN, in all releases."""


def compared(b: Builder, node: Node, place: Place) -> Result:
    """A comparison with 0 instead of the conversion."""
    value = node.inputs[0]
    if node.attributes["to"] is not BOOL or not isinstance(value, Value):
        return None
    if value.element not in COMPARED:
        return None
    return b.op("NotEqual", value, 0)


QUIRK = Quirk(
    releases="2024.0 to 2024.2",
    symptom="A number that is converted to bool, and then to another type, is neither 0 nor 1 "
    "there.",
    fires="At a Cast to bool of an integer of 8 bits or more.",
    safe="Both operators give true for all numbers but 0.",
    cost="none: a NotEqual for a Convert. Only for those releases.",
    run=rewriting("Cast", by=compared),
)
