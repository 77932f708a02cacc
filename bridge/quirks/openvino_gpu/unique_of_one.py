"""Unique of one element. The GPU plugin lacks its further outputs if all shapes are known."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.inference.dims import known_axes
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_only_part(b: Builder, node: Node, place: Place) -> Result:
    """The element, its place, and its count."""
    data = node.inputs[0]
    if data is None or data.rank is None:
        return None
    axis = node.input(1)
    axes = range(data.rank) if axis is None else known_axes(axis, data.rank)
    if axes is None or any(data.dims[at] != 1 for at in axes):
        return None
    values = b.reshape(data, -1) if axis is None else b.op("Identity", data)
    index, count = (node.attributes[f"{name}_element_type"] for name in ("index", "count"))
    numbers = [b.constant([0], index), b.constant([0], index), b.constant([1], count)]
    return [values, *numbers][: len(node.outputs)]


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Unique of one element does not compile if something reads its places or counts, and "
    "all shapes are known.",
    fires="At a Unique of a tensor with one element, or along an axis of size 1.",
    safe="One part differs from no other: it is at place 0, once.",
    cost="none; the constants stay on the way back to ONNX",
    run=rewriting("Unique", by=of_only_part),
)
