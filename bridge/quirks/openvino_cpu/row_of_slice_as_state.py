"""A Gather of one row is a view in the CPU plugin: where the view of a sliced input becomes a
state, the next slice overwrites it before it is read."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, Sliced
from bridge.neutral.types import I64_MAX
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

VIEWS = (
    "Cast", "CastLike", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose",
    "Unsqueeze", "VariadicSplit", "ir::Split",
)  # fmt: skip
"""Operators whose result may lie where their first input does."""


def row_by_slice(b: Builder, node: Node, place: Place) -> Result:
    """A Slice, which copies, in the bodies of Loops with slices and states."""
    if place.body is None or place.holder is None or place.holder.op != "Loop":
        return None
    kinds = {type(port) for port in place.body.inputs}
    if Sliced not in kinds or Carried not in kinds or node.attributes["batch_dims"]:
        return None
    if not _is_view_of_input(node.inputs[0], place.body) or not _leads_to_state(node, place.body):
        return None
    data, index = node.inputs[:2]
    row, axis = integers(index), integers(node.inputs[2])
    if index is None or row is None or len(row) != 1 or axis is None:
        return None
    axes = b.constant([axis[0]])
    start, end = b.constant([row[0]]), b.constant([row[0] + 1 or I64_MAX])
    part = b.op("Slice", data, start, end, axes)
    return part if index.rank else b.op("Squeeze", part, axes)


def _is_view_of_input(value: Value | None, body: Body) -> bool:
    return value is not None and value.behind(*VIEWS) in body.graph.inputs


def _leads_to_state(row: Node, body: Body) -> bool:
    """Whether a state may lie where a row does."""
    views = {*row.outputs}
    for node in body.graph.nodes:
        if node.op in VIEWS and node.inputs[0] in views:
            views.update(node.outputs)
    return any(body.exit_of(port)[0] in views for port in body.inputs if isinstance(port, Carried))


QUIRK = Quirk(
    releases="2026.4",
    symptom="A state that is one row of a sliced input, by Gather, has the row of the next slice.",
    fires="At a Gather of one known row of a body's input in a Loop with slices, if the row leads "
    "to a state without arithmetic.",
    safe="A Slice from an index to the next one is the row that a Gather of the index gives.",
    cost="a Slice, and mostly a Squeeze, for a Gather",
    run=rewriting("Gather", by=row_by_slice),
)
