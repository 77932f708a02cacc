"""A conversion to boolean of an output that is not its node's first."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import BOOL
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def not_zero(b: Builder, node: Node, place: Place) -> Result:
    """A comparison with 0."""
    (x,) = node.inputs
    assert x is not None
    producer = x.producer
    if node.attributes["to"] is not BOOL or producer is None or producer.outputs[0] is x:
        return None
    return b.op("NotEqual", x, 0)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Convert to boolean takes the first output of a node with several, whichever of them "
    "it was given.",
    fires="At a Cast to bool of an output that is not the first of its node.",
    safe="Both are true of all that is not 0, NaN included.",
    cost="none: a NotEqual for a Convert",
    run=rewriting("Cast", by=not_zero),
)
