"""Range of operator set 1. The GPU plugin supports only the Range of operator set 4."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_a_type(b: Builder, node: Node, place: Place) -> Result:
    """The same Range with its element type. Only operator set 4 has this attribute."""
    start = node.inputs[0]
    if node.attributes.get("output_type") is not None or start is None or start.element is None:
        return None
    attributes = {**node.attributes, "output_type": start.element}
    return b.node("Range", node.inputs, 1, attributes, extras=node.extras).outputs


QUIRK = Quirk(
    releases="2026.4",
    symptom='A model with Range of operator set 1 does not compile ("not supported").',
    fires="At a Range without an element type.",
    safe="The element type is the type of its inputs.",
    cost="none: the layer is one of operator set 4",
    run=rewriting("Range", by=of_a_type),
)
