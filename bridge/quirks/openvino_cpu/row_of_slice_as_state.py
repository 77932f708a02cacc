"""A Gather of one row is a view in the CPU plugin: where the view of a sliced input becomes a
state, the next slice overwrites it before it is read."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node
from bridge.neutral.ports import Carried, Sliced
from bridge.neutral.types import I64_MAX
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def row_by_slice(b: Builder, node: Node, place: Place) -> Result:
    """A Slice, which copies, in the bodies of Loops with slices and states."""
    if place.body is None or place.holder is None or place.holder.op != "Loop":
        return None
    kinds = {type(port) for port in place.body.inputs}
    if Sliced not in kinds or Carried not in kinds or node.attributes["batch_dims"]:
        return None
    data, index = node.inputs[:2]
    row, axis = integers(index), integers(node.inputs[2])
    if index is None or row is None or len(row) != 1 or axis is None:
        return None
    axes = b.constant([axis[0]])
    start, end = b.constant([row[0]]), b.constant([row[0] + 1 or I64_MAX])
    part = b.op("Slice", data, start, end, axes)
    return part if index.rank else b.op("Squeeze", part, axes)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A state that is one row of a sliced input, by Gather, has the row of the next slice.",
    cost="a Slice, and mostly a Squeeze, for a Gather",
    run=rewriting("Gather", by=row_by_slice),
)
