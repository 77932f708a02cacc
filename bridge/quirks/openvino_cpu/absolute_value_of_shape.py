"""The absolute value of a vector that OpenVINO computes beforehand, or could: it is dropped. Loops
and Ifs that are opened may make one of any vector."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting
from bridge.quirks.undo import behind, rewritten


def of_matrix(b: Builder, node: Node, place: Place) -> Result:
    """That of a matrix stays."""
    (x,) = node.inputs
    if x is None or x.rank != 1 or x.constant is not None:
        return None
    axis = b.constant([0])
    return b.op("Squeeze", b.op("Abs", b.op("Unsqueeze", x, axis)), axis)


def of_vector(b: Builder, node: Node) -> Iterator[Value]:
    """The absolute value of the vector that was made a matrix."""
    found = behind(node.inputs[0], "Abs")
    before = behind(found.inputs[0], "Unsqueeze") if found is not None else None
    if found is not None and before is not None:
        b.name = found.name
        yield b.op("Abs", before.inputs[0])


RUN = rewriting("Abs", by=of_matrix)

QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The Abs of a vector that comes from a ShapeOf is dropped.",
    issue="https://github.com/openvinotoolkit/openvino/issues/38166",
    cost="an Unsqueeze and a Squeeze",
    run=RUN,
    undo={"Squeeze": rewritten(RUN, of_vector)},
)
