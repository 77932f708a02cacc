"""An empty broadcast that OpenVINO computes when it compiles the model: it divides by zero and
crashes.

Bridge has folded the broadcasts that it knows to be empty. But OpenVINO also folds constants of
other types, and Ifs with a known condition. The plugin computes an empty broadcast correctly at
inference. So the shape is made unknown before the model runs.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import low
from bridge.operators import Result
from bridge.quirks.known import KnownAt, WhenKnown, is_known
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def to_unknown_shape(b: Builder, node: Node, place: Place) -> Result:
    """The broadcast to its shape plus a 0 that OpenVINO does not know."""
    data, sizes = node.inputs[:2]
    assert data is not None and sizes is not None
    if not _may_be_empty(data):
        return None
    if not (is_known(data, place) and is_known(sizes, place)):
        return None
    made = b.op(node.op, data, opaque(b, sizes, "number"), **node.attributes)
    # OpenVINO still infers that the result is empty.
    place.facts(WhenKnown).learn(made, KnownAt.INLINED)
    return made


def _may_be_empty(value: Value) -> bool:
    return value.shape is None or any(low(dim) == 0 for dim in value.shape)


QUIRK = Quirk(
    releases="2026.4",
    symptom="OpenVINO crashes when it compiles an empty broadcast that is computed from constants.",
    fires="At a broadcast that may be empty, if OpenVINO knows the data and the shape.",
    safe="The shape is the same: 0 is added.",
    cost="a 0 added to the shape, from a Bucketize of a random number below 1/2",
    run=rewriting("Broadcast", "Expand", by=to_unknown_shape),
    undo=undone("number", "section"),
)
