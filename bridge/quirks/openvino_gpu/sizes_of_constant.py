"""A constant whose sizes OpenVINO shall not know. The GPU plugin knows random numbers when it
compiles a model, and computes a VariadicSplit of constants wrongly then."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import is_static, size_of
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.opaque import hides, opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def reshaped(b: Builder, node: Node, place: Place) -> Result:
    """The constant in its own shape, which OpenVINO does not know."""
    data = node.inputs[0]
    if data is None or not is_known(data, place) or not hides(node, "sizes"):
        return None
    if is_static(data.shape) and size_of(data.shape) == 1:
        return None  # There is no second element at which the plugin could begin.
    return opaque(b, data, "shape")


QUIRK = Quirk(
    releases="2026.4",
    symptom="A VariadicSplit of a constant into one part, whose length is computed from a random "
    "number, gives elements behind the first ones, and what lies in memory behind the constant.",
    fires="At such a VariadicSplit of more than one element, which another quirk writes for the "
    "initial state of a Loop.",
    safe="A Reshape of a tensor to its own shape changes nothing.",
    cost="none",
    run=rewriting("VariadicSplit", by=reshaped),
    undo=undone("shape"),
)
