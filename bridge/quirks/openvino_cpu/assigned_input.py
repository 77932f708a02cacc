"""A variable that the plugin places in the memory of an input of the model, or of a constant."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.opaque import hides, opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting

VIEWS = {
    "Broadcast", "Cast", "Concat", "Expand", "Identity", "Reshape", "Slice", "Split", "Squeeze",
    "Tile", "Transpose", "Unsqueeze", "VariadicSplit", "ir::Split",
}  # fmt: skip
"""Operators whose output may share the memory of their first or only operand."""


def in_memory_of_its_own(b: Builder, node: Node, place: Place) -> Result:
    """The new value of a variable, moved to memory of its own."""
    (after,) = node.inputs
    assert after is not None
    if after.producer is not None and hides(after.producer, "memory", "content"):
        return None
    if is_known(after, place):
        own = opaque(b, after, "content")
    elif _source(after) in place.graph.inputs:
        own = opaque(b, after, "memory")
    else:
        return None
    return b.node("Assign", [own], len(node.outputs), dict(node.attributes)).outputs


def _source(value: Value) -> Value:
    """The value whose memory a value may share."""
    while (made := value.producer) is not None and made.op in VIEWS and made.inputs[0] is not None:
        value = made.inputs[0]
    return value


QUIRK = Quirk(
    releases="2026.4",
    symptom="A variable that takes an input of the model is a call ahead. It shares the memory of "
    "the input, and the next call overwrites it. One that takes a constant keeps its old value.",
    fires="At an Assign of an input, of a view of one, or of a value known before the model runs.",
    safe="The greatest of a value and itself is the value, as is the only row of a stack of it.",
    cost="a copy of the assigned value.",
    run=rewriting("Assign", by=in_memory_of_its_own),
    undo=undone("memory", "content"),
)
