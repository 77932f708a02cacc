"""A reduction over an axis of size 0. The GPU plugin computes nothing: it keeps the result of the
previous inference, and ends the process in the first one."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.types import BOOL, I32, U8, Element, low
from bridge.operators import Result
from bridge.quirks.openvino_cpu.reduction_over_nothing import OF_NOTHING
from bridge.quirks.quirk import Place, Quirk, rewriting

REDUCTIONS = (*OF_NOTHING, "ReduceMax", "ReduceMin")
"""Reductions whose result over an empty axis is defined. A mean over it is not."""


def over_more(b: Builder, node: Node, place: Place) -> Result:
    """The reduction of a tensor with a further element in each axis that may be empty."""
    data = node.inputs[0]
    if data is None or data.rank is None or data.element is None:
        return None
    axes = known_axes(node.input(1), data.rank) or ()
    more = [int(axis in axes and low(size) == 0) for axis, size in enumerate(data.dims)]
    if not any(more):
        return None
    wide = b.cast(data, U8) if data.element is BOOL else data
    neutral = b.like(_of_nothing(node.op, data.element), wide)
    longer = b.op("Pad", wide, b.constant([0] * len(more) + more), neutral, mode="constant")
    inputs = [b.cast(longer, data.element), *node.inputs[1:]]
    return b.node(node.op, inputs, 1, node.attributes, extras=node.extras).outputs


def _of_nothing(op: str, element: Element) -> float:
    """The result over an empty axis. The plugin computes integers in at most 32 bits."""
    if op in OF_NOTHING:
        return int(OF_NOTHING[op])
    if element is BOOL:
        return int(op == "ReduceMin")
    if element.is_float:
        return inf if op == "ReduceMin" else -inf
    least, most = element.bounds
    return min(most, I32.bounds[1]) if op == "ReduceMin" else max(least, I32.bounds[0])


def _reductions(b: Builder, node: Node) -> Iterator[Value]:
    """The reduction of the tensor itself."""
    data = node.inputs[0]
    made = data.behind("Cast").producer if data is not None else None
    if made is None or made.op != "ir::Pad" or made.inputs[0] is None or data is None:
        return
    whole = made.inputs[0]
    whole = whole.behind("Cast") if data.element is BOOL else whole
    yield b.op(node.op, whole, *node.inputs[1:], **node.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A sum, or another reduction, over an empty axis keeps the result of the previous "
    "inference, or ends the process.",
    fires="At a reduction over an axis that may have size 0.",
    safe="The further element is a 0 for a sum, a 1 for a product, the least number for a maximum: "
    "it changes no result, and is the result of an empty axis.",
    cost="a copy of the tensor",
    run=rewriting(*REDUCTIONS, by=over_more),
    guess=dict.fromkeys(REDUCTIONS, _reductions),
)
