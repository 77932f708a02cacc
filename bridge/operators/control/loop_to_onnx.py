"""Loop for ONNX: Scan-11 if it can express the Loop (see `_is_scan`), else Loop.

ONNX's Loop does not slice its inputs, and it stacks only along a new first axis. It returns only
states and stacks. Scan's slices and stacks lose their axis.
"""

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
    """Makes slices and stacks lose their axis."""
    set_axes(b, loop_builder, keepdims=False)


def carried_exits(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes a state of each value that is only yielded, because ONNX returns only states and
    stacks. The new state starts with a dummy that no iteration reads. If two states share an output
    of the body, the second state gets an output of its own."""
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
                "initial value for it; give the inputs' shapes with `input_shapes`"
            )
        shape = [d if isinstance(d, int) else 0 for d in value.shape]
        dummy = b.filled(0, shape, value.element)
        state = Value(TensorType(value.element, value.shape))
        body.add_entry(state, Carried(loop_builder.outer(dummy), index))


def counted_slices(b: Builder, loop_builder: LoopBuilder) -> None:
    """Adds a trip count (i64) if slices determine the number of iterations."""
    trips, body = loop_builder.trip_count, loop_builder.body
    if trips is None and any(isinstance(port, Sliced) for port in body.inputs):
        trips = trips_of_slices(b, loop_builder.inputs, body)
        if not any(isinstance(port, Condition) for port in body.outputs):
            body.add_exit(constant_condition(loop_builder.inside(b)), Condition())
    if trips is not None and trips.element is not I64:
        trips = b.op("Cast", trips, to=I64)
    if trips is not loop_builder.trip_count:
        loop_builder.inputs[0] = trips


def scalar_inputs(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes the trip count and the first condition scalars, as IR makes them on the way back.
    Exception: a value that the body reads keeps its rank, because ONNX's body reads the same
    rank."""
    body = loop_builder.body
    for value, port in body.entries():
        if isinstance(port, Carried) and isinstance(body.outputs[port.output], Condition):
            return
        if isinstance(port, Iteration) and value.rank != 0:
            return
    scalar_heads(b, loop_builder)


def scalar_condition(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes the condition a scalar after each iteration, as before the first, unless the body reads
    it. IR's Loop also accepts a vector with one element. With both forms, ONNX's Loop would have a
    state of two ranks."""
    body = loop_builder.body
    carried = {port.output for port in body.inputs if isinstance(port, Carried)}
    for index, (value, exit) in enumerate(body.exits()):
        if isinstance(exit, Condition) and index not in carried and value.rank != 0:
            body.graph.outputs[index] = scalar(loop_builder.inside(b), value)


def no_true_condition(b: Builder, loop_builder: LoopBuilder) -> None:
    """Removes a first condition that is always true, if a trip count ends the Loop."""
    condition = loop_builder.condition
    if condition is None or loop_builder.trip_count is None or condition.names:
        return
    read = any(outer_input(port) == 1 for port in loop_builder.body.inputs)
    if condition.constant is not None and is_positive(condition) and not read:
        loop_builder.inputs[1] = None


def slices_in_body(b: Builder, loop_builder: LoopBuilder) -> None:
    """Moves slices into the body. The input is then the whole tensor, and the body takes its part
    by the number of the iteration."""
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
        outer = loop_builder.operand(port.input)
        whole = Value(outer.type, list(outer.names))
        body.graph.inputs[index], body.inputs[index] = whole, Invariant(port.input)
        with inner:
            cut = _cut(inner, whole, number, port)
        part = inner.op("Slice", *cut)
        if port.keepdims:
            # ONNX's inference does not find the size of the part.
            sizes = [0] * len(whole.dims)
            sizes[port.axis] = port.part_size
            inner.node("Reshape", [part, inner.constant(sizes)], [old], {"allowzero": False})
        else:
            inner.node("Squeeze", [part, inner.constant([port.axis])], [old])
        old.declared = old.type
    body.graph.prepend(front)


def _cut(b: Builder, whole: Value, number: Value, port: Sliced) -> list[Value]:
    """The inputs of the Slice that takes the part of an iteration, with its axis."""
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
    """Turns IR's concatenation of parts with one element into a stack: the body removes the
    axis."""
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
    """Moves stacks behind the Loop into their final order. ONNX's Loop stacks on a new first axis,
    but IR concatenates along any axis, and also backwards."""
    for index, (value, exit) in enumerate(loop_builder.body.exits()):
        if not isinstance(exit, Stacked) or not _needs_place(exit):
            continue
        rank = value.rank
        if rank is None:
            raise Refused(
                f'the rank of the loop output "{value.name}" is not known; give the '
                "inputs' shapes with `input_shapes`"
            )
        loop_builder.after(exit.output, partial(_place, exit, rank))
        loop_builder.body.outputs[index] = Stacked(exit.output, keepdims=False)


def _needs_place(exit: Stacked) -> bool:
    return exit.keepdims or exit.axis != 0 or exit.stride < 0


def _place(port: Stacked, rank: int, b: Builder, stacked: Value) -> Value:
    """A stack with a new first axis, rearranged as `port` requires."""
    if port.stride < 0:
        limits = (b.constant([-1]), b.constant([np.iinfo(np.int64).min]))
        stacked = b.op("Slice", stacked, *limits, [0], [-1])
    if not port.keepdims:
        return b.from_first(stacked, port.axis % (rank + 1), rank + 1)
    axis = port.axis % rank
    # [n, ..., part, ...] -> [..., n, part, ...] -> [..., n * part, ...]
    moved = b.from_first(stacked, axis, rank + 1)
    dims: list[int | Value] = [
        size if isinstance(size, int) else b.op("Shape", moved, start=place, end=place + 1)
        for place, size in enumerate(moved.dims)
    ]
    count, part = (b.shape(dim) for dim in dims[axis : axis + 2])
    dims[axis : axis + 2] = [count * part]
    return b.op("Reshape", moved, b.shape(*dims), allowzero=True)


LoopStep = Callable[[Builder, LoopBuilder], None]

SCAN: tuple[LoopStep, ...] = (dropped_axes, carried_exits)
"""The steps for a Loop that Scan can express, in this order."""

LOOP: tuple[LoopStep, ...] = (
    counted_slices, scalar_inputs, scalar_condition, no_true_condition, slices_in_body,
    carried_exits, single_parts, joined_stacks,
)  # fmt: skip
"""The steps for any other Loop, in this order."""


@legalizes("Loop", target="onnx")
def loop_to_onnx(b: Builder, node: Node) -> Result:
    """Converts IR's Loop-5 and TensorIterator-1 to ONNX; see the steps."""
    refuse_newer_types(b, node)
    loop_builder = LoopBuilder.of(node)
    for step in SCAN if _is_scan(loop_builder) else LOOP:
        step(b, loop_builder)
    return loop_builder.build(b) if loop_builder.changed else None


def _is_scan(loop_builder: LoopBuilder) -> bool:
    """Whether ONNX's Scan can express the Loop. Whole slices alone determine the number of
    iterations, and states keep their shape."""
    ports = (*loop_builder.body.inputs, *loop_builder.body.outputs)
    return (
        loop_kind(loop_builder.node) == "scan"
        and all(port.are_whole for port in ports if isinstance(port, Sliced | Stacked))
        and _states_keep_shape(loop_builder)
    )


def _states_keep_shape(loop_builder: LoopBuilder) -> bool:
    """Whether states keep their shape. A value that is only yielded needs a known shape, because
    its state starts with a dummy of this shape."""
    body = loop_builder.body
    carried = {port.output for port in body.inputs if isinstance(port, Carried)}
    for value, port in body.entries():
        initial = loop_builder.initial(port) if isinstance(port, Carried) else None
        if initial is not None and initial.shape is not None and value.shape != initial.shape:
            return False
        # Equal unknown sizes do not prove an unchanged shape: a size with only a lower bound may
        # grow.
        again = body.graph.outputs[port.output] if isinstance(port, Carried) else value
        if again.shape is not None and again.shape != value.shape:
            return False
    return all(
        is_static(value.shape)
        for index, (value, exit) in enumerate(body.exits())
        if isinstance(exit, Yield) and index not in carried
    )
