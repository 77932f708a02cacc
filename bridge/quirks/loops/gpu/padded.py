"""A Loop that no empty tensor enters or leaves.

OpenVINO's GPU plugin ends the process, or keeps old elements, where an empty tensor enters a Loop.
So each axis that may be empty gets a further element in front, which the body cuts off.

A state stays as it is if the shape of a Reshape behind the Loop is computed from it. The plugin
would read the shape before the Slice behind the Loop has run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, Condition, Iteration, Sliced, Stacked, Yield
from bridge.neutral.rewrite import Rewriter
from bridge.neutral.types import BOOL, I64, I64_MAX, U8, Dim, Interval, TensorType, low
from bridge.quirks.loops.gpu.draft import LoopDraft
from bridge.quirks.loops.gpu.kinds import has_numbers

Axes = Sequence[int]


def padded(b: Builder, node: Node, rewriter: Rewriter) -> list[Value] | None:
    """The outputs of such a Loop; None if no tensor of it can be empty."""
    exits = {
        index: axes
        for index, axes in _open_exits(node.body)
        if not _is_a_shape(node, node.body.outputs[index], rewriter)
    }
    entries = [
        exits.get(port.output, ())
        if isinstance(port, Carried)
        else _open_axes(value, _along(port, value))
        for value, port in node.body.entries()
    ]
    if not any(exits.values()) and not any(entries):
        return None
    return _padded_loop(b, node, exits, entries)


def _open_exits(body: Body) -> Iterator[tuple[int, Axes]]:
    """The body outputs with the axes that may be empty; for a state, those of the input."""
    states = {port.output: v for v, port in body.entries() if isinstance(port, Carried)}
    for index, (value, port) in enumerate(body.exits()):
        if isinstance(port, Condition):
            continue
        yield index, _open_axes(states.get(index, value), _along(port, value))


def _is_a_shape(node: Node, port: object, rewriter: Rewriter) -> bool:
    """Whether a Reshape takes a shape that is computed from a state of a Loop."""
    if not isinstance(port, Yield) or port.output is None:
        return False
    values, seen = [node.outputs[port.output]], set()
    while values:
        value = values.pop()
        if value in seen or value.element is not I64:
            continue
        seen.add(value)
        for user in rewriter.users(value):
            if user.op == "Reshape" and user.inputs[1] is value:
                return True
            values += user.outputs
    return False


def _along(port: object, part: Value) -> int | None:
    """The axis of a part along which a Loop goes."""
    if not isinstance(port, Sliced | Stacked) or not port.keepdims or not part.rank:
        return None
    return port.axis % part.rank


def _open_axes(value: Value, along: int | None = None) -> Axes:
    """The axes of a tensor that may be empty, without the one along which a Loop goes."""
    dims = value.shape or () if has_numbers(value) else ()
    return [axis for axis, dim in enumerate(dims) if axis != along and low(dim) == 0]


def _padded_loop(
    b: Builder, node: Node, exits: Mapping[int, Axes], entries: Sequence[Axes]
) -> list[Value]:
    """The outputs of a Loop whose inputs and outputs have one more element along some axes."""
    draft = LoopDraft(b, node)
    body, tail = draft.body, draft.tail
    with draft.head:
        for index, axes in enumerate(entries):
            _pad_entry(b, draft, index, axes)
    draft.begin()
    with tail:
        for index, axes in exits.items():
            body.graph.outputs[index] = _longer(tail, body.graph.outputs[index], axes)
    results = draft.loop(b, len(node.outputs))
    for index, axes in exits.items():
        exit = body.outputs[index]
        if isinstance(exit, Yield | Stacked) and exit.output is not None:
            around = _axes_of_whole(axes, exit, node.outputs[exit.output])
            if around:
                shorter = b.op("Slice", results[exit.output], *_all_but_first(b, around))
                results[exit.output] = shorter
    return results


def _pad_entry(b: Builder, draft: LoopDraft, index: int, axes: Axes) -> None:
    """A body input takes the longer tensor, and the body cuts it."""
    value, port = draft.body.entries()[index]
    if not axes or isinstance(port, Iteration) or port.input is None:
        return
    outer = draft.operand(port.input)
    place = draft.outer(_longer(b, outer, _axes_of_whole(axes, port, outer)))
    dims: list[Dim] = list(value.dims)
    for axis in axes:
        dim = dims[axis]
        dims[axis] = 1 + dim if isinstance(dim, int) else Interval(1, None)
    entry = Value(TensorType(value.element, tuple(dims)), value.names)
    value.names = []
    draft.body.graph.inputs[index] = entry
    draft.body.inputs[index] = replace(port, input=place)
    draft.head.node("Slice", [entry, *_all_but_first(draft.head, axes)], [value])


def _axes_of_whole(axes: Axes, port: object, whole: Value) -> Axes:
    """The axes of a part, in the whole that a Loop slices or stacks."""
    if not isinstance(port, Sliced | Stacked) or port.keepdims:
        return axes
    at = port.axis % len(whole.dims)
    return [axis + (axis >= at) for axis in axes]


def _longer(b: Builder, value: Value, axes: Axes) -> Value:
    """A tensor with a zero in front of each axis."""
    if not axes:
        return value
    wide = b.cast(value, U8) if value.element is BOOL else value
    pads = [int(axis in axes) for axis in range(len(value.dims))]
    zeros = [0] * len(pads)
    longer = b.op("Pad", wide, b.constant(pads + zeros), b.like(0, wide), mode="constant")
    return b.cast(longer, value.element)


def _all_but_first(b: Builder, axes: Axes) -> list[Value]:
    """The inputs of a Slice that leaves out the first element of each axis."""
    count = len(axes)
    return [b.constant(list(n)) for n in ([1] * count, [I64_MAX] * count, axes)]
