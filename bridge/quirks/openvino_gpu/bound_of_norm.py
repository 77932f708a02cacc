"""NormalizeL2 whose epsilon is a lower bound. The GPU plugin adds it."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def divided(b: Builder, node: Node, place: Place) -> Result:
    """The quotient by the root of the sum of squares, which is at least epsilon."""
    data, axes = node.inputs
    if data is None or axes is None or node.attributes["eps_mode"] != "max":
        return None
    squares = b.op("ReduceSum", data * data, axes, keepdims=True, noop_with_empty_axes=True)
    return data / b.op("Sqrt", b.max(squares, b.like(node.attributes["eps"], squares)))


QUIRK = Quirk(
    releases="2026.4",
    symptom="NormalizeL2 with eps_mode max adds epsilon to the sum of squares.",
    fires="At a NormalizeL2 whose eps_mode is max.",
    safe="This is the operator's definition.",
    cost="a Multiply, a ReduceSum, a Maximum, a Sqrt and a Divide; they stay on the way back to "
    "ONNX",
    run=rewriting("NormalizeL2", by=divided),
)
