"""A variable of open size that takes a value whose size is known.

The CPU plugin holds such a value in the place of the variable's start. The variable is then empty,
or has the start's size, whatever it took.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_open_size(b: Builder, node: Node, place: Place) -> Result:
    """What a variable takes, with sizes that OpenVINO does not know where the variable's are
    open."""
    (after,) = node.inputs
    variable = node.attributes["variable_id"]
    held = next(
        (
            reader.outputs[0]
            for reader in place.graph.nodes
            if reader.op == "ReadValue" and reader.attributes["variable_id"] == variable
        ),
        None,
    )
    if after is None or held is None or after.rank != held.rank:
        return None
    sizes = enumerate(zip(held.shape or (), after.shape or (), strict=True))
    axes = [a for a, (own, new) in sizes if not isinstance(own, int) and isinstance(new, int)]
    if not axes:
        return None
    hidden = opaque(b, after, "sizes", axes)
    return b.node("Assign", [hidden], len(node.outputs), dict(node.attributes)).outputs


QUIRK = Quirk(
    releases="2026.4",
    symptom="A variable of open size that takes a value of known size is empty, or keeps the size "
    "of its start.",
    fires="At an Assign of a value whose size along an axis is known, where the variable's is not.",
    safe="The only part of a value, with the rest as its length, is the value.",
    cost="a VariadicSplit, and a 0 from a Bucketize of a random number below 1/2, along each such "
    "axis.",
    run=rewriting("Assign", by=of_open_size),
    undo=undone("sizes"),
)
