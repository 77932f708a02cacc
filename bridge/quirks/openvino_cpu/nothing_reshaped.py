"""Values that surely have no elements, and one size that is not known, in another shape: OpenVINO
asks for that size as what is left, which is 0 where nothing is divided by nothing."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.opaque import hides, opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting

MOVING = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that leave elements where they lie, for each of which OpenVINO may write a Reshape."""


def of_unknown_sizes(b: Builder, node: Node, place: Place) -> Result:
    """The same of a value of which OpenVINO knows no size, so that it keeps the operator."""
    data, *others = node.inputs
    (output,) = node.outputs
    assert data is not None
    shape = output.shape or ()
    if 0 not in shape or sum(not isinstance(dim, int) for dim in shape) != 1:
        return None
    if data.constant is not None or hides(node, "shape") or _is_hidden(data):
        return None
    return b.op(node.op, opaque(b, data, "shape"), *others, **node.attributes)


def _is_hidden(value: Value) -> bool:
    """Whether the sizes of a value are hidden already, perhaps before such operators."""
    while (made := value.producer) is not None and made.inputs and made.inputs[0] is not None:
        if hides(made, "shape"):
            return True
        if made.op not in (*MOVING, "Cast"):
            return False
        value = made.inputs[0]
    return False


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Squeeze, an Unsqueeze or a Transpose of ones, that gives a known size of 0 and one "
    "that is not known, gives 0 for the latter.",
    fires="At a Reshape, Squeeze, Transpose or Unsqueeze to a size 0 and one open size, of what "
    "is no constant.",
    safe="A value in the shape that it has is the value; 0 is added to the shape.",
    cost="a Reshape, which copies nothing, and a random number below 1/2, of which a Bucketize "
    "makes 0",
    run=rewriting(*MOVING, by=of_unknown_sizes),
    undo=undone("shape"),
)
