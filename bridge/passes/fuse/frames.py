"""STFT: the transform of frames that are gathered from a signal, as the way to IR writes it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.passes.fuse.uses import Uses, either_way, is_number


def short_time_transform(b: Builder, node: Node, uses: Uses) -> Value | None:
    """RDFT of the frames of real signals [batch, length, 1], times a window. Each frame begins a
    step behind the one before, the last as late as it can."""
    assert b.target is not None
    squeeze = uses.single_use(node.inputs[0], "Squeeze")
    product = uses.single_use(squeeze.inputs[0], "Mul") if squeeze is not None else None
    if product is None or squeeze is None or b.target.opset < 17 or node.input(2) is not None:
        return None
    if known_axes(squeeze.input(1), 4) != (3,) or integers(node.inputs[1]) != (2,):
        return None
    for frames, window in either_way(product):
        gather = uses.single_use(frames, "Gather")
        signal = gather.inputs[0] if gather is not None else None
        if gather is None or signal is None or signal.rank != 3 or signal.dims[2] != 1:
            continue
        grid = _grid(gather, signal, uses)
        if grid is not None and window.shape == (grid[1], 1):
            step, size = grid
            shaped = b.reshape(window, size)
            return b.op("STFT", signal, step, shaped, b.constant(size), onesided=True)
    return None


def _grid(gather: Node, signal: Value, uses: Uses) -> tuple[Value, int] | None:
    """The step and the size of the frames that are gathered along axis 1."""
    if gather.attributes["batch_dims"] or integers(gather.inputs[2]) != (1,):
        return None
    places = uses.single_use(gather.inputs[1], "Add")
    for column, inside in either_way(places) if places is not None else ():
        unsqueeze = uses.single_use(column, "Unsqueeze")
        starts = uses.single_use(unsqueeze.inputs[0], "Mul") if unsqueeze is not None else None
        size = integers(_counted(inside))
        if unsqueeze is None or starts is None or integers(unsqueeze.inputs[1]) != (1,) or not size:
            continue
        for numbers, step in either_way(starts):
            count = _counted(numbers)
            if (
                count is not None
                and step.rank == 0
                and _is_number_of_frames(count, signal, size[0], step)
            ):
                return step, size[0]
    return None


def _counted(value: Value) -> Value | None:
    """How many numbers there are, of those from 0 on."""
    node = value.producer
    if node is None or node.op != "Range" or not is_number(node.inputs[0], 0):
        return None
    return node.inputs[1] if is_number(node.inputs[2], 1) else None


def _is_number_of_frames(count: Value, signal: Value, size: int, step: Value) -> bool:
    """Whether a count is 1 + (length - size) / step, or 0 where that is less."""
    known, steps, length = integers(count), integers(step), signal.dims[1]
    if known is not None and steps is not None and isinstance(length, int):
        return known[0] == max(0, 1 + (length - size) // steps[0])
    node = count.producer
    if node is not None and node.op == "Max" and len(node.inputs) == 2:
        count = next((v for v, other in either_way(node) if is_number(other, 0)), count)
    for more, one in _operands(count, "Add"):
        ratio = more.producer if is_number(one, 1) else None
        if ratio is None or ratio.op != "Div" or not _is_same(ratio.inputs[1], step):
            continue
        room = ratio.inputs[0].producer if ratio.inputs[0] is not None else None
        if room is not None and room.op == "Sub" and is_number(room.inputs[1], size):
            return _is_length(room.inputs[0], signal)
    return False


def _operands(value: Value, op: str) -> list[tuple[Value, Value]]:
    node = value.producer
    return list(either_way(node)) if node is not None and node.op == op else []


def _is_same(value: Value | None, other: Value) -> bool:
    known = integers(other)
    return value is other or (known is not None and is_number(value, known[0]))


def _is_length(value: Value | None, signal: Value) -> bool:
    """Whether a value is the size of axis 1 of a signal, a scalar."""
    if value is None:
        return False
    taken = value.behind("Reshape", "Squeeze").producer
    if taken is None or taken.op != "Gather" or not is_number(taken.inputs[1], 1):
        return False
    shape = taken.inputs[0].producer if taken.inputs[0] is not None else None
    return shape is not None and shape.op == "Shape" and shape.inputs[0] is signal
