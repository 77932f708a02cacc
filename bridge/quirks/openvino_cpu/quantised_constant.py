"""Quantised constants in a body that the CPU plugin computes itself.

It moves the subtraction of their zero point behind the operator that it computes, and joins it to
the FakeQuantize that follows; the Convert of the zero point then stays behind, without a user.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.known import Known, when_known
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_copy(b: Builder, node: Node, place: Place) -> Result:
    """The FakeQuantize of a copy that is made when the model runs."""
    value, *limits = node.inputs
    if value is None or place.outer is None or when_known(value, place) is not Known.COMPUTED:
        return None
    return b.op(node.op, opaque(b, value, "content"), *limits, **node.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="In a body, a FakeQuantize of what an operator that OpenVINO does not fold "
    "(GatherElements, ...) makes of quantised constants with a zero point does not load: "
    '"contains empty child edge".',
    fires="At a FakeQuantize in a body of a value that the plugin computes from constants when it "
    "compiles the model.",
    safe="The only row of a stack of one value is the value.",
    cost="a Gather of the constant, and a random number below 1/2, of which a Bucketize makes 0",
    run=rewriting("FakeQuantize", by=of_copy),
    undo=undone("content"),
)
