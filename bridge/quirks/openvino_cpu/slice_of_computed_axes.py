"""A Slice with computed axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import I64_MAX
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind


def of_all_axes(b: Builder, node: Node, place: Place) -> Result:
    """A Slice along all axes. The axes without bounds stay whole."""
    data, starts, ends, axes, steps = (node.input(i) for i in range(5))
    if data is None or not data.rank or axes is None or known_of(axes).array is not None:
        return None
    rank = data.rank
    places = b.as_i64(axes) % rank
    full = []
    for bound, whole in ((starts, 0), (ends, I64_MAX), (steps, 1)):
        bounds = b.constant([whole] * rank)
        if bound is not None and not _are(bound, whole):
            bounds = b.op("ScatterElements", bounds, places, b.as_i64(bound), 0)
        full.append(bounds)
    return b.op("Slice", data, full[0], full[1], np.arange(rank), full[2])


def _are(bound: Value, whole: int) -> bool:
    """Whether all elements are known to be `whole`."""
    known = known_of(bound).array
    return known is not None and bool((known == whole).all())


def _slices(b: Builder, node: Node) -> Iterator[Value]:
    """The Slice with computed axes, from the bounds that are scattered into the bounds of all
    axes."""
    bounds = [behind(node.input(i), "ScatterElements", 1) for i in (1, 2, 4)]
    put = next((made for made in bounds if made is not None), None)
    places = behind(put.inputs[1], "Mod") if put is not None else None
    axes = places.inputs[0] if places is not None else None
    count = None if axes is None else known_of(axes).length
    if count is None:
        return
    starts, ends, steps = (
        b.constant([whole] * count) if made is None else made.inputs[2]
        for made, whole in zip(bounds, (0, I64_MAX, 1), strict=True)
    )
    yield b.op("Slice", node.inputs[0], starts, ends, axes, steps)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Slice of a tensor of known shape with computed axes crashes. On the GPU plugin, "
    "negative axes give wrong numbers.",
    fires="At a Slice with computed axes.",
    safe="An axis without bounds gets a slice from its start to its end with step 1, so it stays "
    "whole.",
    cost="a ScatterElementsUpdate for each bound",
    run=rewriting("Slice", by=of_all_axes),
    guess={"Slice": _slices},
)
