"""The absolute value of a vector that OpenVINO computes beforehand, or could: it is dropped. Loops
and Ifs that are opened may make one of any vector."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def of_matrix(b: Builder, node: Node, place: Place) -> Result:
    """That of a matrix stays."""
    (x,) = node.inputs
    if x is None or x.rank != 1 or x.constant is not None:
        return None
    axis = b.constant([0])
    return b.op("Squeeze", b.op("Abs", b.op("Unsqueeze", x, axis)), axis)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The Abs of a vector that comes from a ShapeOf is dropped.",
    issue="https://github.com/openvinotoolkit/openvino/issues/38166",
    cost="an Unsqueeze and a Squeeze",
    run=rewriting("Abs", by=of_matrix),
)
