"""Loop for ONNX: Scan-11 where slices alone say how often the body runs and stay whole, else Loop.

ONNX's Loop neither slices nor joins along other axes than the first, and gives back only what it
carries; Scan's slices and stacks lose their axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from bridge.neutral.graph import loop_kind
from bridge.neutral.ports import (
    Carried,
    Condition,
    Invariant,
    Iteration,
    Sliced,
    Stacked,
    Yield,
    outer_input,
)
from bridge.neutral.types import I64, TensorType, is_static
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes
from bridge.operators.control.axes import set_axes
from bridge.operators.control.if_ import refuse_newer_types
from bridge.operators.control.loop_builder import (
    LoopBuilder,
    constant_condition,
    is_positive,
    iteration_number,
    scalar,
    scalar_heads,
    trips_of_slices,
)


def dropped_axes(b: Builder, loop_builder: LoopBuilder) -> None:
    """Slices and stacks lose their axis."""
    set_axes(b, loop_builder, keepdims=False)


def carried_exits(b: Builder, loop_builder: LoopBuilder) -> None:
    """ONNX gives back what it carries alone, so what is only yielded is carried too, from a dummy
    that no iteration reads; a value that is carried twice is carried as two."""
    body = loop_builder.body
    seen: set[int] = set()
    for index, port in enumerate(body.inputs):
        if isinstance(port, Carried):
            if port.output in seen:
                place = body.add_exit(body.graph.outputs[port.output], Yield(None))
                port = body.inputs[index] = replace(port, output=place)
            seen.add(port.output)
    for index, (value, exit) in enumerate(body.exits()):
        if not isinstance(exit, Yield) or index in seen:
            continue
        if value.element is None or value.shape is None:
            raise Refused(
                f'the rank of the loop output "{value.name}" is not known, and ONNX needs an '
                "initial value for it; give the inputs' shapes with --input-shape"
            )
        shape = [d if isinstance(d, int) else 0 for d in value.shape]
        dummy = b.filled(0, shape, value.element)
        state = Value(TensorType(value.element, value.shape))
        body.add_entry(state, Carried(loop_builder.outer(dummy), index))


def counted_slices(b: Builder, loop_builder: LoopBuilder) -> None:
    """Where slices say how often the body runs, a trip count does; it is i64."""
    trips, body = loop_builder.trip_count, loop_builder.body
    if trips is None and any(isinstance(port, Sliced) for port in body.inputs):
        trips = trips_of_slices(b, loop_builder.inputs, body)
        if not any(isinstance(port, Condition) for port in body.outputs):
            body.add_exit(constant_condition(loop_builder.inside(b)), Condition())
    if trips is not None and trips.element is not I64:
        trips = b.op("Cast", trips, to=I64)
    if trips is not loop_builder.trip_count:
        loop_builder.inputs[0] = trips


def unseen_heads(b: Builder, loop_builder: LoopBuilder) -> None:
    """The trip count and the first condition are scalars, as they are in IR the next time, unless
    the body sees them: ONNX's own do, and what it sees is of their rank."""
    body = loop_builder.body
    for value, port in body.entries():
        if isinstance(port, Carried) and isinstance(body.outputs[port.output], Condition):
            return
        if isinstance(port, Iteration) and value.rank != 0:
            return
    scalar_heads(b, loop_builder)


def unseen_condition(b: Builder, loop_builder: LoopBuilder) -> None:
    """The condition is a scalar after each iteration as before the first, unless the body sees it:
    IR's Loop also takes a vector of one, and with both ONNX's would have a state of two ranks."""
    body = loop_builder.body
    carried = {port.output for port in body.inputs if isinstance(port, Carried)}
    for index, (value, exit) in enumerate(body.exits()):
        if isinstance(exit, Condition) and index not in carried and value.rank != 0:
            body.graph.outputs[index] = scalar(loop_builder.inside(b), value)


def unsaid_condition(b: Builder, loop_builder: LoopBuilder) -> None:
    """A first condition that is nothing but true, where a trip count ends the Loop, need not be
    said."""
    condition = loop_builder.condition
    if condition is None or loop_builder.trip_count is None or condition.names:
        return
    read = any(outer_input(port) == 1 for port in loop_builder.body.inputs)
    if condition.constant is not None and is_positive(condition) and not read:
        loop_builder.inputs[1] = None


def slices_in_body(b: Builder, loop_builder: LoopBuilder) -> None:
    """What was sliced comes in whole; the body takes its part by the number of the iteration."""
    body = loop_builder.body
    slices = [(v, p) for v, p in body.entries() if isinstance(p, Sliced)]
    if not slices:
        return
    count = iteration_number(body)
    front: list[Node] = []
    inner = Builder(front, loop_builder.node.name)
    number = count if count.element is I64 else inner.op("Cast", count, to=I64)
    for old, port in slices:
        index = body.graph.inputs.index(old)
        outer = loop_builder.inputs[port.input]
        assert outer is not None
        whole = Value(outer.type, list(outer.names))
        body.graph.inputs[index], body.inputs[index] = whole, Invariant(port.input)
        with inner:
            cut = _cut(inner, whole, number, port)
        if port.keepdims:
            inner.node("Slice", cut, [old])
        else:
            inner.node("Squeeze", [inner.op("Slice", *cut), inner.constant([port.axis])], [old])
        old.declared = old.type
    body.graph.prepend(front)


def _cut(b: Builder, whole: Value, number: Value, port: Sliced) -> list[Value]:
    """The inputs of the Slice that takes a part in an iteration, with its axis."""
    start = b.constant([port.start])
    if port.start < 0:
        size = b.op("Shape", whole)
        axis = b.op("Gather", size, [port.axis], 0)
        start = axis + start
    at = number * [port.stride] + start
    # A backward part is the `part_size` elements that end at its position.
    low = at if port.stride > 0 else at - [port.part_size - 1]
    return [
        whole,
        low,
        low + b.constant([port.part_size]),
        b.constant([port.axis]),
        b.constant([1]),
    ]


def single_parts(b: Builder, loop_builder: LoopBuilder) -> None:
    """What IR joins from parts of one element is stacked: the axis goes inside."""
    inner = loop_builder.inside(b)
    for index, (value, exit) in enumerate(loop_builder.body.exits()):
        if not isinstance(exit, Stacked) or not exit.keepdims or not value.shape:
            continue
        axis = exit.axis % len(value.shape)
        if value.shape[axis] != 1 or exit.part_size != 1:
            continue
        loop_builder.body.outputs[index] = replace(exit, axis=axis, keepdims=False)
        loop_builder.body.graph.outputs[index] = inner.squeeze(value, axis)


def joined_stacks(b: Builder, loop_builder: LoopBuilder) -> None:
    """ONNX's Loop stacks on a new first axis; what IR joins along another, or backwards, is
    brought into place behind the Loop."""
    for index, (value, exit) in enumerate(loop_builder.body.exits()):
        if not isinstance(exit, Stacked) or not _needs_place(exit):
            continue
        rank = value.rank
        if rank is None:
            raise Refused(
                f'the rank of the loop output "{value.name}" is not known; give the '
                "inputs' shapes with --input-shape"
            )
        loop_builder.after(exit.output, partial(_place, exit, rank))
        loop_builder.body.outputs[index] = Stacked(exit.output, keepdims=False)


def _needs_place(exit: Stacked) -> bool:
    return exit.keepdims or exit.axis != 0 or exit.stride < 0


def _place(port: Stacked, rank: int, b: Builder, stacked: Value) -> Value:
    """What was stacked along a new first axis, as `port` says."""
    if port.stride < 0:
        limits = (b.constant([-1]), b.constant([np.iinfo(np.int64).min]))
        stacked = b.op("Slice", stacked, *limits, [0], [-1])
    if not port.keepdims:
        axis = port.axis % (rank + 1)
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        return b.op("Transpose", stacked, order)
    axis = port.axis % rank
    # [n, ..., part, ...] -> [..., n, part, ...] -> [..., n * part, ...]
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    moved = b.op("Transpose", stacked, order) if axis else stacked
    dims: list[int | Value] = [
        size if isinstance(size, int) else b.op("Shape", moved, start=place, end=place + 1)
        for place, size in enumerate(moved.dims)
    ]
    count, part = (b.shape(dim) for dim in dims[axis : axis + 2])
    dims[axis : axis + 2] = [count * part]
    return b.op("Reshape", moved, b.shape(*dims), allowzero=True)


Step = Callable[[Builder, LoopBuilder], None]

SCAN: tuple[Step, ...] = (dropped_axes, carried_exits)
"""What is done, in this order, to a Loop that Scan can say."""

LOOP: tuple[Step, ...] = (
    counted_slices, unseen_heads, unseen_condition, unsaid_condition, slices_in_body, carried_exits,
    single_parts, joined_stacks,
)  # fmt: skip
"""What is done, in this order, to any other."""


@legalizes("Loop", target="onnx")
def loop_to_onnx(b: Builder, node: Node) -> Result:
    """IR's Loop-5 and TensorIterator-1 as ONNX has them; see the steps."""
    refuse_newer_types(b, node)
    loop_builder = LoopBuilder.of(node)
    for step in SCAN if _is_scan(loop_builder) else LOOP:
        step(b, loop_builder)
    return loop_builder.build(b) if loop_builder.changed else None


def _is_scan(loop_builder: LoopBuilder) -> bool:
    """Whether ONNX's Scan can say the Loop: slices alone say how often it runs and are whole, and
    states keep their shape."""
    body = loop_builder.body
    return (
        loop_kind(loop_builder.node) == "scan"
        and all(_is_whole(port) for port in (*body.inputs, *body.outputs))
        and _states_keep_shape(loop_builder)
    )


def _is_whole(port: object) -> bool:
    """Whether a slice or a stack takes single parts from one end to the other."""
    if not isinstance(port, Sliced | Stacked):
        return True
    whole = (0, -1) if port.stride == 1 else (-1, 0)
    return port.part_size == 1 and abs(port.stride) == 1 and (port.start, port.end) == whole


def _states_keep_shape(loop_builder: LoopBuilder) -> bool:
    """Whether the shapes of states stay, and a value that is only yielded has a shape that is
    known, so that a state can start with it."""
    body = loop_builder.body
    carried = {port.output for port in body.inputs if isinstance(port, Carried)}
    for value, port in body.entries():
        initial = loop_builder.initial(port) if isinstance(port, Carried) else None
        if initial is not None and initial.shape is not None and value.shape != initial.shape:
            return False
        # Equal unknown sizes are no promise: one that is at least as large grows.
        again = body.graph.outputs[port.output] if isinstance(port, Carried) else value
        if again.shape is not None and again.shape != value.shape:
            return False
    return all(
        is_static(value.shape)
        for index, (value, exit) in enumerate(body.exits())
        if isinstance(exit, Yield) and index not in carried
    )
