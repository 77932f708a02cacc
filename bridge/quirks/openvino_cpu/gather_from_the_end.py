"""GatherElements and GatherND with indices that count from the end.

Old releases do not support negative indices. They read memory in front of the data.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.signs import is_not_negative, replaces_negative
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def counted_before(b: Builder, node: Node, place: Place) -> Result:
    """The operator on indices from the start. Negative indices get the size of the axis added."""
    data, indices = node.inputs
    assert isinstance(data, Value) and isinstance(indices, Value)
    axes = _axes(node, data, indices)
    made = indices.producer
    if axes is None or is_not_negative(indices) or (made is not None and replaces_negative(made)):
        return None
    counted = b.from_the_front(indices, b.sizes(data, *axes))
    return b.op(node.op, data, counted, **node.attributes)


def _axes(node: Node, data: Value, indices: Value) -> range | None:
    """The axes of the indices; None if they are not known."""
    if data.rank is None or not indices.rank:
        return None
    if node.op == "GatherElements":
        axis = node.attributes["axis"] % data.rank
        return range(axis, axis + 1)
    first, count = node.attributes["batch_dims"], indices.dims[-1]
    return range(first, first + count) if isinstance(count, int) else None


def _gathers(b: Builder, node: Node) -> Iterator[Value]:
    """The operator on the indices before the addition."""
    data, counted = node.inputs
    made = counted.producer if counted is not None else None
    if made is not None and made.op == "Where":
        yield b.op(node.op, data, made.inputs[2], **node.attributes)


QUIRK = Quirk(
    releases="2024.0 to 2025.2",
    symptom="GatherElements and GatherND with negative indices read memory in front of the data.",
    fires="At a GatherElements or GatherND whose indices may be negative.",
    safe="An index below 0 selects the same element as this index plus the size of its axis.",
    cost="an Add, a Less and a Select before each operator. Only for those releases.",
    run=rewriting("GatherElements", "GatherND", by=counted_before),
    guess={op: _gathers for op in ("GatherElements", "GatherND")},
)
