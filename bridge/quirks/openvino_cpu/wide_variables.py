"""The CPU plugin has variables of some types alone. It computes i64 and f64 in 32 bits, in which it
can hold them, too."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import F32, F64, I16, I32, I64, U16, U32, U64, Element
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

HELD: dict[Element, Element] = {F64: F32, I64: I32, U64: I32, U32: I32, I16: I32, U16: I32}
"""The types of variables that do not run, and those in which the plugin computes them."""


def held_in_another_type(b: Builder, node: Node, place: Place) -> Result:
    """A variable of the type in which the plugin computes, converted where it is read and
    assigned."""
    value = node.outputs[0] if node.op == "ReadValue" else node.inputs[0]
    if value is None or value.element not in HELD:
        return None
    held, attributes = HELD[value.element], dict(node.attributes)
    given = [None if one is None else b.cast(one, held) for one in node.inputs]
    if node.op == "Assign":
        return b.node("Assign", given, len(node.outputs), attributes).outputs
    if "variable_type" in attributes:
        attributes["variable_type"] = held
    return b.cast(b.node("ReadValue", given, 1, attributes).outputs[0], value.element)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A variable of f64, of 16-bit integers or of integers wider than i32 holds garbage, or "
    "its model does not compile.",
    fires="At a ReadValue and an Assign of these types.",
    safe="The plugin computes i64, u64 and u32 modulo 2^32 and f64 as f32, so nothing that it "
    "computes needs more. A 16-bit integer is an i32. A state of 64 bits that is passed on as it "
    "is, which the plugin does exactly, is no variable. The types are in the metadata for the way "
    "back (`bridge/passes/state/types.py`).",
    cost="two Converts, which the plugin drops.",
    run=rewriting("ReadValue", "Assign", by=held_in_another_type),
)
