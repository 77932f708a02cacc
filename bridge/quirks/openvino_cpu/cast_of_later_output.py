"""A conversion to boolean of the second or a later output of a node."""

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
    symptom="A Convert to boolean reads the first output of a node with several outputs, even if "
    "its input is another one.",
    fires="At a Cast to bool of an output that is not the first of its node.",
    safe="Both operators give true for all numbers but 0, and for NaN.",
    cost="none: a NotEqual for a Convert",
    run=rewriting("Cast", by=not_zero),
)
