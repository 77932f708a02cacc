"""An Abs of a vector that OpenVINO computes, or could compute, from constants and shapes.

OpenVINO drops this Abs. If the vector is a Concat, OpenVINO takes the absolute value of its inputs,
so all readers of the Concat see it (AbsSinking of SimplifyShapeOfSubGraph).
"""

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
    """Whether a value may be computed from the shape of another value."""

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """The results of such a value are computed from the shape, too."""
        return [node.op in ("Shape", "Size") or any(facts)] * len(node.outputs)


FORWARDING = frozenset((
    "Abs", "Add", "Broadcast", "Cast", "Div", "Expand", "Flatten", "Gather", "GatherElements",
    "Mul", "Pad", "Reshape", "Reverse", "Roll", "ScatterElements", "ScatterND", "ScatterUpdate",
    "Slice", "SliceScatter", "Split", "Squeeze", "StridedSlice", "Sub", "Tile", "Transpose",
    "Unsqueeze", "VariadicSplit", "Where", "ir::Convert", "ir::Pad", "ir::Split",
))  # fmt: skip
"""Operators that OpenVINO replaces by one of their operands, if they change nothing."""


class MayBeConcat(May):
    """Whether OpenVINO may treat a value as a Concat.

    OpenVINO merges equal Concats. So a Concat with one reader may get others.
    """

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """The analysis finds each Concat, and each forwarding operator behind a Concat."""
        found = node.op == "Concat" or (node.op in FORWARDING and any(facts))
        return [found] * len(node.outputs)


def of_matrix(b: Builder, node: Node, place: Place) -> Result:
    """The Abs of a matrix with one row, because OpenVINO keeps the Abs of a matrix."""
    (x,) = node.inputs
    if x is None or x.rank != 1:
        return None
    if not is_known(x, place) and not any(place.facts(a).of(x) for a in (OfShape, MayBeConcat)):
        return None
    axis = b.constant([0])
    return b.op("Squeeze", abs(b.op("Unsqueeze", x, axis)), axis)


X = var()
ABS = abs(op("Unsqueeze", X, 0))


@fuses(op("Squeeze", ABS, 0), ABS)
def of_vector(b: Builder, found: Found, uses: Uses) -> Value:
    """The Abs of the vector, from the Abs of the matrix."""
    return abs(found[X])


QUIRK = Quirk(
    releases="2026.4",
    symptom="The Abs of a vector that comes from a ShapeOf is dropped. If the vector is a Concat, "
    "other readers of this Concat, or of an equal one, read the absolute values.",
    issue="https://github.com/openvinotoolkit/openvino/issues/38166",
    fires="At an Abs of a vector, if OpenVINO may compute the vector from a shape or from "
    "constants. Also behind a Concat, with operators between that may change nothing (Cast, "
    "Reshape, Add, ...).",
    safe="Abs works element by element, so it gives the same for a matrix of one row. The row axis "
    "is removed again.",
    cost="an Unsqueeze and a Squeeze",
    run=rewriting("Abs", by=of_matrix),
    undo={"Squeeze": of_vector},
)
