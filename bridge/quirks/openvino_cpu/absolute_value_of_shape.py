"""The absolute value of a vector that OpenVINO computes beforehand, or could, of constants and
shapes: it is dropped."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder, integers
from bridge.neutral.dataflow import Forward
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.passes.fuse.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


class OfShape(Forward[bool]):
    """Whether a value may follow from the shape of another."""

    bottom = iteration = False

    def join(self, one: bool, other: bool) -> bool:
        """Whether either does."""
        return one or other

    def outside(self, value: Value) -> bool:
        """An input of the model does not."""
        return False

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """What is computed of such a value follows from the shape, too."""
        return [node.op in ("Shape", "Size") or any(facts)] * len(node.outputs)


def of_matrix(b: Builder, node: Node, place: Place) -> Result:
    """That of a matrix stays."""
    (x,) = node.inputs
    if x is None or x.rank != 1 or x.constant is not None:
        return None
    if not is_known(x, place) and not place.facts(OfShape).of(x):
        return None
    axis = b.constant([0])
    return b.op("Squeeze", b.op("Abs", b.op("Unsqueeze", x, axis)), axis)


def of_vector(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The absolute value of the vector that was made a matrix."""
    found = uses.single_use(node.inputs[0], "Abs")
    before = uses.single_use(found.inputs[0], "Unsqueeze") if found is not None else None
    if found is None or before is None or before.inputs[0] is None:
        return None
    if integers(node.inputs[1]) != (0,) or integers(before.inputs[1]) != (0,):
        return None
    b.name = found.name
    return b.op("Abs", before.inputs[0])


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The Abs of a vector that comes from a ShapeOf is dropped.",
    issue="https://github.com/openvinotoolkit/openvino/issues/38166",
    fires="At an Abs of a vector that follows from a shape, or from constants alone.",
    safe="The Abs of a matrix of one row is taken element by element, too; the row is taken away "
    "again.",
    cost="an Unsqueeze and a Squeeze",
    run=rewriting("Abs", by=of_matrix),
    undo={"Squeeze": of_vector},
)
