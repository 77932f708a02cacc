"""Reshapes of an empty tensor with one unknown size.

OpenVINO computes the unknown size from the number of elements and the other sizes. It divides 0 by
0, and takes 0 as the size.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.opaque import hides, opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting

MOVING = ("Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that OpenVINO may replace by a Reshape, if they move no element."""


def of_unknown_sizes(b: Builder, node: Node, place: Place) -> Result:
    """The operator on a value whose sizes OpenVINO does not know. So OpenVINO keeps the
    operator."""
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
    symptom="A Squeeze, an Unsqueeze or a Transpose of axes of size 1 gives 0 for an unknown size. "
    "This happens if another size of the result is known to be 0.",
    fires="At a Reshape, Squeeze, Transpose or Unsqueeze whose result has a size of 0 and one open "
    "size, unless the input is a constant.",
    safe="A value reshaped to its own shape is the value, and adding 0 does not change the shape.",
    cost="a Reshape, which copies nothing, and a 0 from a Bucketize of a random number below 1/2",
    run=rewriting(*MOVING, by=of_unknown_sizes),
    undo=undone("shape"),
)
