"""A variable that takes an input of the model, or a constant, as it lies in memory."""

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
"""Operators that may give their first operand, or the only one, as it lies in memory."""


def in_memory_of_its_own(b: Builder, node: Node, place: Place) -> Result:
    """What a variable takes, out of the place where it lies."""
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
    """What a value may be a view of."""
    while (made := value.producer) is not None and made.op in VIEWS and made.inputs[0] is not None:
        value = made.inputs[0]
    return value


QUIRK = Quirk(
    releases="2026.4",
    symptom="A variable that takes an input of the model is a call ahead: it lies where the input "
    "does, which the next call overwrites. One that takes a constant keeps what it had.",
    fires="At an Assign of an input, of a view of one, or of what is known before the model runs.",
    safe="The greatest of a value and itself is the value, as is the only row of a stack of it.",
    cost="a copy of what is assigned.",
    run=rewriting("Assign", by=in_memory_of_its_own),
    undo=undone("memory", "content"),
)
