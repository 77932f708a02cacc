"""A Slice from the first element on in front of a GatherElements, which is taken away."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def gathered(b: Builder, node: Node, place: Place) -> Result:
    """A Gather of the first elements."""
    data, indices = node.inputs
    assert data is not None
    axes = _cut_from_the_start(data)
    if axes is None:
        return None
    assert data.producer is not None and data.shape is not None
    part = data.producer.inputs[0]
    for axis in axes:
        size = data.shape[axis]
        first = b.counted(size) if isinstance(size, int) else b.positions(data, axis)
        part = b.op("Gather", part, first, axis)
    return b.op("GatherElements", part, indices, **node.attributes)


def _cut_from_the_start(data: Value) -> tuple[int, ...] | None:
    """The axes of which `data` is the first elements; None where it is something else."""
    cut = data.producer
    if cut is None or cut.op != "Slice" or data.rank is None:
        return None
    _, starts, _, axes, steps = (cut.input(i) for i in range(5))
    if set(known_of(starts).ints or (-1,)) != {0} or set(known_of(steps).ints or (-1,)) != {1}:
        return None
    return tuple(range(data.rank)) if axes is None else known_axes(axes, data.rank)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Slice from the first element on is taken away in front of a GatherElements, whose "
    "negative indices then count from another end, and whose other axes no longer fit.",
    fires="At a GatherElements of a Slice that begins at 0 with step 1.",
    safe="The first elements of an axis are those of the positions from 0 to the size of the "
    "Slice.",
    cost="none: a Gather for a Slice",
    run=rewriting("GatherElements", by=gathered),
)
