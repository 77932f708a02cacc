"""Computed places in a vector that is a constant. The GPU plugin takes other places."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.quirk import Place, Quirk, rewriting


def in_column(b: Builder, node: Node, place: Place) -> Result:
    """The same in a matrix of one column."""
    data, indices, *others = node.inputs
    if data is None or indices is None or data.rank != 1 or indices.rank is None:
        return None
    if not is_known(data, place) or known_of(indices).array is not None:
        return None
    inputs = [b.unsqueeze(data, 1), indices, *others]
    if node.op == "ScatterND":
        assert others[0] is not None
        inputs[2] = b.unsqueeze(others[0], indices.rank - 1)
    else:
        inputs[1] = b.unsqueeze(indices, 1)
    if node.op == "ScatterElements":
        assert others[0] is not None
        inputs[2] = b.unsqueeze(others[0], 1)
    made = b.node(node.op, inputs, 1, node.attributes, extras=node.extras).outputs[0]
    return b.squeeze(made, 1)


QUIRK = Quirk(
    releases="2026.4",
    symptom="ScatterElementsUpdate of a constant vector writes all updates to its first element. "
    "ScatterNDUpdate and GatherElements take wrong places too.",
    fires="At a ScatterElements, ScatterND or GatherElements with computed indices, if the vector "
    "is known when the model is compiled.",
    safe="A vector has the elements of a matrix of one column.",
    cost="reshapes, which copy nothing; they stay on the way back to ONNX",
    run=rewriting("GatherElements", "ScatterElements", "ScatterND", by=in_column),
)
