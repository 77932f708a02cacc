"""Unique of an empty tensor. The CPU plugin keeps the outputs of the previous inference."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import low
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting


def no_more_than_there_are(b: Builder, node: Node, place: Place) -> Result:
    """Each output, cut to at most the size of the input along the axis."""
    value, axis = node.inputs[0], node.input(1)
    known = (0,) if axis is None else known_of(axis).ints
    if value is None or value.shape is None or not known:
        return None
    if all(low(dim) > 0 for dim in value.shape) or _are_cut(node, place):
        return None
    flat = value if axis is not None or value.rank == 1 else b.reshape(value, -1)
    along = known[0] % len(flat.dims)
    outputs = b.ops("Unique", len(node.outputs), *node.inputs, **node.attributes)
    count = b.sizes(flat, along)
    axes = [along] + [0] * (len(outputs) - 1)
    return [
        b.op("Slice", output, [0], count, [axis])
        for output, axis in zip(outputs, axes, strict=True)
    ]


def _are_cut(node: Node, place: Place) -> bool:
    """Whether all readers of the outputs cut them in this way."""
    users = [user for output in node.outputs for user in place.uses.users(output)]
    read = sum(map(place.uses.count, node.outputs))
    return read == len(users) and all(map(_is_whole, users))


def _is_whole(node: Node) -> bool:
    """Whether a node cuts an output of Unique to the size of its input."""
    made = node.inputs[0].producer if node.inputs[0] is not None else None
    if node.op != "Slice" or made is None or made.op != "Unique":
        return False
    ends, start, step = node.inputs[2], known_of(node.inputs[1]).ints, node.input(4)
    found = ends.producer if ends is not None else None
    if found is not None and found.op == "Gather" and found.inputs[0] is not None:
        found = found.inputs[0].producer
    of = found.inputs[0] if found is not None and found.op == "Shape" else None
    if of is not None and of is not made.inputs[0]:  # of no axis, all elements
        of = of.producer.inputs[0] if of.producer is not None else None
    return (
        of is not None
        and of is made.inputs[0]
        and start == (0,)
        and (step is None or known_of(step).ints == (1,))
    )


def _uncut(b: Builder, node: Node, uses: Uses) -> Value | None:
    return node.inputs[0] if _is_whole(node) else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="Unique of an empty tensor gives the result of the previous inference.",
    fires="At a Unique along a known axis, if the input may be empty.",
    safe="There are at most as many unique elements as elements of the input.",
    cost="a Slice of each output",
    run=rewriting("Unique", by=no_more_than_there_are, uses=True),
    undo={"Slice": _uncut},
)
