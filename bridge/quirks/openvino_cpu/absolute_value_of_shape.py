"""The absolute value of a vector that OpenVINO computes beforehand, or could, of constants and
shapes: it is dropped. That of joined vectors is taken before they are joined, for all readers
(AbsSinking of SimplifyShapeOfSubGraph)."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import May
from bridge.neutral.graph import Node, Value
from bridge.neutral.terms import Found, op, var
from bridge.operators import Result
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.quirk import Place, Quirk, rewriting


class OfShape(May):
    """Whether a value may follow from the shape of another."""

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """What is computed of such a value follows from the shape, too."""
        return [node.op in ("Shape", "Size") or any(facts)] * len(node.outputs)


FORWARDING = frozenset((
    "Abs", "Add", "Broadcast", "Cast", "Div", "Expand", "Flatten", "Gather", "GatherElements",
    "Mul", "Pad", "Reshape", "Reverse", "Roll", "ScatterElements", "ScatterND", "ScatterUpdate",
    "Slice", "SliceScatter", "Split", "Squeeze", "StridedSlice", "Sub", "Tile", "Transpose",
    "Unsqueeze", "VariadicSplit", "Where", "ir::Convert", "ir::Pad", "ir::Split",
))  # fmt: skip
"""Operators that OpenVINO replaces by an operand of theirs, where they change nothing."""


class Joined(May):
    """Whether OpenVINO may take a value for a Concat. Equal ones become one, so that a Concat with
    one reader may have others."""

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """A Concat is one, and what forwards one."""
        found = node.op == "Concat" or (node.op in FORWARDING and any(facts))
        return [found] * len(node.outputs)


def of_matrix(b: Builder, node: Node, place: Place) -> Result:
    """That of a matrix stays."""
    (x,) = node.inputs
    if x is None or x.rank != 1 or x.constant is not None:
        return None
    if not is_known(x, place) and not any(place.facts(a).of(x) for a in (OfShape, Joined)):
        return None
    axis = b.constant([0])
    return b.op("Squeeze", abs(b.op("Unsqueeze", x, axis)), axis)


X = var()
ABS = abs(op("Unsqueeze", X, 0))


@fuses(op("Squeeze", ABS, 0), ABS)
def of_vector(b: Builder, found: Found, uses: Uses) -> Value:
    """The absolute value of the vector that was made a matrix."""
    return abs(found[X])


QUIRK = Quirk(
    releases="2026.4",
    symptom="The Abs of a vector that comes from a ShapeOf is dropped. Where the vector is a "
    "Concat, others that read it or an equal one read the absolute values.",
    issue="https://github.com/openvinotoolkit/openvino/issues/38166",
    fires="At an Abs of a vector that follows from a shape, or from constants alone, or from a "
    "Concat through operators that may change nothing (Cast, Reshape, Add, ...).",
    safe="The Abs of a matrix of one row is taken element by element, too; the row is taken away "
    "again.",
    cost="an Unsqueeze and a Squeeze",
    run=rewriting("Abs", by=of_matrix),
    undo={"Squeeze": of_vector},
)
