"""Unique of an empty tensor. The CPU plugin keeps the outputs of the previous inference, and fails
in the first one."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import I64, low
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind


def of_something(b: Builder, node: Node, place: Place) -> Result:
    """The unique elements of the input with a size of 1 for each size of 0. The outputs are cut to
    at most the sizes of the input."""
    value, axis = node.inputs[0], node.input(1)
    known = (0,) if axis is None else known_of(axis).ints
    if value is None or value.shape is None or not known:
        return None
    if all(low(dim) > 0 for dim in value.shape) or _before(node) is not None:
        return None
    flat = value if axis is not None or value.rank == 1 else b.reshape(value, -1)
    rank = len(flat.dims)
    sizes = b.op("Shape", flat)
    missing = b.cast(sizes.equal(0), I64)
    some = b.op("ir::Pad", flat, [0] * rank, missing, b.like(0, flat), pad_mode="constant")
    outputs = b.ops("Unique", len(node.outputs), some, *node.inputs[1:], **node.attributes)
    count = b.take(sizes, 0, known[0] % rank)
    values = b.op("Slice", outputs[0], [0] * rank, sizes, list(range(rank)))
    return [values, *(b.op("Slice", output, [0], count, [0]) for output in outputs[1:])]


def _before(node: Node) -> Value | None:
    """The tensor that Unique gets with a size of 1 for each size of 0."""
    pad = node.inputs[0].producer if node.inputs[0] is not None else None
    if pad is None or pad.op != "ir::Pad":
        return None
    asked = behind(pad.inputs[2], "Equal", most=2)
    sizes = asked.inputs[0].producer if asked is not None and asked.inputs[0] is not None else None
    found = sizes is not None and sizes.op == "Shape" and sizes.inputs[0] is pad.inputs[0]
    return pad.inputs[0] if found else None


def _uncut(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The output of Unique of the tensor to whose sizes the Slice cuts."""
    data, start, end = node.inputs[:3]
    made = data.producer if data is not None else None
    value = _before(made) if made is not None and made.op == "Unique" else None
    if made is None or data is None or value is None or set(known_of(start).ints or ()) != {0}:
        return None
    if not _is_size(end, value, known_of(made.input(1)).ints or (0,)):
        return None
    step = node.input(4)
    if step is not None and set(known_of(step).ints or ()) != {1}:
        return None
    flat = value.producer
    if made.input(1) is None and flat is not None and flat.op == "Reshape" and flat.inputs[0]:
        value = flat.inputs[0]
    place, inputs = made.outputs.index(data), [value, *made.inputs[1:]]
    for other in uses.users(value):
        if other.op == made.op and other.inputs == inputs and other.attributes == made.attributes:
            return other.outputs[place]
    return b.ops(made.op, len(made.outputs), *inputs, **made.attributes)[place]


def _is_size(end: Value | None, value: Value, axes: tuple[int, ...]) -> bool:
    """Whether a value is the shape of another one, or its size along an axis."""
    sizes = behind(end, "Shape", most=2)
    known = known_of(end).ints
    if known is not None and len(known) == 1:
        return value.shape is not None and value.shape[axes[0]] == known[0]
    return sizes is not None and sizes.inputs[0] is value


QUIRK = Quirk(
    releases="2026.4",
    symptom="Unique of an empty tensor gives the result of the previous inference, and fails in "
    "the first one.",
    fires="At a Unique along a known axis, if the input may be empty.",
    safe="There are at most as many unique elements as elements of the input. If another size is "
    "0, all that lies along the axis is equal: zeros instead of nothing.",
    cost="a Pad of the input, which copies it, and a Slice of each output",
    run=rewriting("Unique", by=of_something),
    undo={"Slice": _uncut},
)
