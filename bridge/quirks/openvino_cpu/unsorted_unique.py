"""Unique elements in order of occurrence, along no axis: the CPU plugin gives all but the first as
0, unless somebody reads where each element is among them."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def along_an_axis(b: Builder, node: Node, place: Place) -> Result:
    """The operator along the only axis of a vector."""
    value = node.inputs[0]
    if value is None or node.attributes["sorted"] or node.input(1) is not None:
        return None
    vector = value if value.rank == 1 else b.reshape(value, -1)
    made = b.ops("Unique", len(node.outputs), vector, 0, **node.attributes)
    return list(made)


QUIRK = Quirk(
    releases="2026.4",
    symptom="Unique along no axis, in order of occurrence, gives 0 for all elements but the first "
    "where the places of each element are not read.",
    fires="At a Unique along no axis, in order of occurrence.",
    safe="Along no axis the elements are those of the flat tensor, which the only axis of a "
    "vector has.",
    cost="a Reshape, which copies nothing",
    run=rewriting("Unique", by=along_an_axis),
)
