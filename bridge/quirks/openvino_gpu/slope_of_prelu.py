"""PReLU with a computed slope. The GPU plugin takes only a constant."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_computed_slope(b: Builder, node: Node, place: Place) -> Result:
    """The product with the slope where an element is negative."""
    x, slope = node.inputs
    if x is None or slope is None or slope.behind("Cast", "Reshape", "Unsqueeze").constant:
        return None
    return b.where(x < 0, x * slope, x)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A model with PReLU of a computed slope does not compile (\"hasn't been found in "
    'primitive_ids map").',
    fires="At a PRelu whose slope is no constant.",
    safe="This is the definition of PRelu; the slope is broadcast as in numpy.",
    cost="a Less, a Multiply and a Select, which stay on the way back to ONNX",
    run=rewriting("PRelu", by=of_computed_slope),
)
