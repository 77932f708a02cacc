"""A Slice from the first element in front of a GatherElements. OpenVINO removes the Slice."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def gathered(b: Builder, node: Node, place: Place) -> Result:
    """The GatherElements with a Gather of the first elements instead of the Slice."""
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
    """The axes along which `data` is a Slice from the first element; None if it is not such a
    Slice."""
    cut = data.producer
    if cut is None or cut.op != "Slice" or data.rank is None:
        return None
    _, starts, _, axes, steps = (cut.input(i) for i in range(5))
    if set(known_of(starts).ints or (-1,)) != {0} or set(known_of(steps).ints or (-1,)) != {1}:
        return None
    return tuple(range(data.rank)) if axes is None else known_axes(axes, data.rank)


QUIRK = Quirk(
    releases="2026.4",
    symptom="OpenVINO removes a Slice from the first element in front of a GatherElements. "
    "Negative indices then count from another end, and the sizes of other axes no longer match.",
    fires="At a GatherElements of a Slice that begins at 0 with step 1.",
    safe="A Gather of the positions from 0 to the size of the Slice gives the same elements.",
    cost="none: a Gather for a Slice",
    run=rewriting("GatherElements", by=gathered),
)
