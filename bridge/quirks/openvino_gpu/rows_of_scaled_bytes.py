"""Gather with known indices of a scaled constant of at most 8 bits. The GPU plugin computes it when
it compiles the model, and takes wrong elements, or elements without their scale."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.known import is_known, is_unfolded
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_copy(b: Builder, node: Node, place: Place) -> Result:
    """The Gather of a copy of the scaled constant."""
    wanted = is_unfolded(node) and is_known(node.inputs[1], place)
    return with_hidden(b, node, "memory", [wanted, False, False]) if wanted else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Gather of scaled bytes with known indices gives elements of one row for all rows. "
    "With one index it leaves out the scale.",
    fires="At a Gather of a scaled constant of at most 8 bits, if its indices are known when the "
    "model is compiled.",
    safe="The maximum of a value with itself is the value.",
    cost="a Maximum of the constant, which the plugin computes when it compiles the model",
    run=rewriting("Gather", by=of_copy),
    undo=undone("memory"),
)
