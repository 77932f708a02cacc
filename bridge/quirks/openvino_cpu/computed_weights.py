"""Weights of recurrent layers that follow from constants, but are none: the CPU plugin takes them
for constants, and fails where it computes them itself."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.known import Known, when_known
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import RECURRENT, Place, Quirk, rewriting


def of_copies(b: Builder, node: Node, place: Place) -> Result:
    """The layer with copies of such weights, which the plugin does not take for constants."""
    operands = [
        opaque(b, value, "content")
        if value is not None and when_known(value, place) is Known.COMPUTED
        else value
        for value in node.inputs
    ]
    if operands == node.inputs:
        return None
    made = b.node(node.op, operands, len(node.outputs), node.attributes, extras=node.extras)
    return list(made.outputs)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A recurrent layer of weights that an operator makes of constants which OpenVINO does "
    "not fold (GatherElements, GatherND, ...) does not load.",
    fires="At a recurrent layer with an input that the plugin computes from constants when it "
    "compiles the model.",
    safe="The only row of a stack of one value is the value.",
    cost="a Gather of the weights, and a random number below 1/2, of which a Bucketize makes 0",
    run=rewriting(*RECURRENT, by=of_copies),
    undo=undone("content"),
)
