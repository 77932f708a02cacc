"""The absolute value of a vector that OpenVINO computes beforehand, or could, of constants and
shapes: it is dropped. That of joined vectors is taken before they are joined, for all readers."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Forward
from bridge.neutral.graph import Node, Value
from bridge.neutral.terms import Found, op, var
from bridge.operators import Result
from bridge.passes.fuse import fuses
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
    is_joined = x.producer is not None and x.producer.op == "Concat" and place.count(x) > 1
    if not is_joined and not is_known(x, place) and not place.facts(OfShape).of(x):
        return None
    axis = b.constant([0])
    return b.op("Squeeze", b.op("Abs", b.op("Unsqueeze", x, axis)), axis)


X = var()
ABS = op("Abs", op("Unsqueeze", X, 0))


@fuses(op("Squeeze", ABS, 0), ABS)
def of_vector(b: Builder, found: Found, uses: Uses) -> Value:
    """The absolute value of the vector that was made a matrix."""
    return b.op("Abs", found[X])


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The Abs of a vector that comes from a ShapeOf is dropped. Where the vector is a "
    "Concat that others read, these read the absolute values.",
    issue="https://github.com/openvinotoolkit/openvino/issues/38166",
    fires="At an Abs of a vector that follows from a shape, or from constants alone, or is a "
    "Concat with another reader.",
    safe="The Abs of a matrix of one row is taken element by element, too; the row is taken away "
    "again.",
    cost="an Unsqueeze and a Squeeze",
    run=rewriting("Abs", by=of_matrix, uses=True),
    undo={"Squeeze": of_vector},
)
