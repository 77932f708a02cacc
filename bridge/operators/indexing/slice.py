"""Slice, StridedSlice, SliceScatter, Reverse."""

import numpy as np

from bridge.neutral.inference import constraints as must, first, infers_shape, knows, require
from bridge.neutral.inference.dims import known_axes, rearranged, with_dim
from bridge.neutral.inference.known import bounds, is_at_least_zero, known_of, unknown
from bridge.neutral.types import (
    ANY,
    I64_MAX,
    Dim,
    KnownValue,
    Shape,
    format_shape,
    high,
    interval,
    is_static,
    low,
)
from bridge.operators import Builder, Node, Refused, Value, legalizes, required
from bridge.operators.guarding import SafeInputs, Unsafe, guards

FIRST = -I64_MAX
"""The end of a backward slice that includes the first element."""


@legalizes("Slice", target="ir")
def slice_for_ir(b: Builder, node: Node) -> Value | None:
    """Slice for IR: Slice-8 requires its steps. Without axes to slice, nothing is left of it."""
    data, starts, ends = required(node, 0, 1, 2)
    lengths = [known_of(value).length for value in node.inputs[1:] if value is not None]
    if 0 in lengths:
        return b.op("Identity", data)
    if node.input(4) is not None:
        return None
    count = known_of(starts).length
    if count is not None:
        steps = b.like([1] * count, starts)
    else:
        steps = b.op("Expand", b.like([1], starts), b.op("Shape", starts))
    return b.op("Slice", data, starts, ends, node.input(3), steps)


@legalizes("StridedSlice", target="onnx")
def strided_slice_for_onnx(b: Builder, node: Node) -> Value:
    """StridedSlice-1 as Slice for sliced axes, Gather for removed axes, and Unsqueeze for new
    axes."""
    plan = strided_slice_plan(node)
    if plan is None:
        raise Refused(
            "the rank of the input or the number of slices is not known; "
            "declare the shapes of the graph's inputs"
        )
    x = node.operand(0)
    cuts = [(axis, position) for kind, axis, position in plan if kind == "slice"]
    cuts = [(axis, at) for axis, at in cuts if not _whole(node, at)]
    if cuts:
        axes = [axis for axis, _ in cuts]
        starts, ends, steps = _bounds(b, node, [at for _, at in cuts])
        x = b.op("Slice", x, starts, ends, axes, steps)
    for kind, axis, at in reversed(plan):
        if kind == "shrink":
            index = b.constant(0) if masked(node, "begin_mask", at) else _at(b, node.operand(1), at)
            x = b.op("Gather", x, index, axis)
    left = [kind for kind, _, _ in plan if kind != "shrink"]
    new = [axis for axis, kind in enumerate(left) if kind == "new"]
    if new:
        x = b.op("Unsqueeze", x, new)
    return x if x is not node.inputs[0] else b.op("Identity", x)


def _whole(node: Node, at: int) -> bool:
    """Whether position `at` selects its whole axis."""
    stride = known_of(node.input(3)).parts
    forward = node.input(3) is None or (stride is not None and stride[at] == 1)
    begin = known_of(node.inputs[1]).parts
    from_start = masked(node, "begin_mask", at) or (begin is not None and begin[at] == 0)
    return forward and from_start and masked(node, "end_mask", at)


def _bounds(b: Builder, node: Node, at: list[int]) -> tuple[Value, Value, Value]:
    """Starts, ends and steps of the positions `at`, after the masks."""
    begin, end, *rest = (_at(b, value, at) for value in node.inputs[1:4] if value is not None)
    steps = rest[0] if rest else b.constant([1] * len(at))
    backward = steps < 0
    result = []
    for name, limits, ahead, back in (
        ("begin_mask", begin, 0, I64_MAX), ("end_mask", end, I64_MAX, FIRST)
    ):  # fmt: skip
        mask = np.array([masked(node, name, position) for position in at])
        if mask.any():
            far = b.where(backward, b.constant(back), b.constant(ahead))
            limits = far if mask.all() else b.where(b.constant(mask), far, limits)
        result.append(limits)
    return result[0], result[1], steps


def _at(b: Builder, vector: Value, at: int | list[int]) -> Value:
    return b.op("Gather", b.as_i64(vector), at, 0)


@legalizes("Reverse", target="onnx")
def reverse_for_onnx(b: Builder, node: Node) -> Value:
    """Reverse-1: its axes are numbers or a mask."""
    x, axes = required(node, 0, 1)
    known = known_of(axes).array
    if node.attributes["mode"] == "mask":
        if known is not None:
            axes = b.constant(np.flatnonzero(known))
        else:
            axes = b.op("Squeeze", b.op("NonZero", axes), [0])
    axes = b.vector(b.as_i64(axes))
    if known_of(axes).length == 0:
        return b.op("Identity", x)
    shape = b.op("Shape", axes)
    starts, ends = b.op("Expand", [-1], shape), b.op("Expand", [FIRST], shape)
    return b.op("Slice", x, starts, ends, axes, starts)


@legalizes("SliceScatter", target="onnx")
def slice_scatter_for_onnx(b: Builder, node: Node) -> Value:
    """SliceScatter-15: slices the indices of the elements, and scatters to these indices."""
    data, updates, start, stop, step, axes = (node.input(i) for i in range(6))
    flat, shape = b.constant([-1]), b.op("Shape", data)
    count = b.op("Size", data)
    numbers = b.op("Reshape", b.op("Range", 0, count, 1), shape)
    places = b.op("Slice", numbers, start, stop, axes, step)
    lines = [b.op("Reshape", value, flat) for value in (data, places, updates)]
    return b.op("Reshape", b.op("ScatterElements", *lines, 0), shape)


FAR = 1 << 30
"""A bound of at least this value means the end of the axis, with any integer type."""


def sliced(dim: Dim, start: int | None, end: int | None, step: int | None) -> Dim:
    """The rest of a dimension after `start:end:step` with ONNX's clamping."""
    if start is None or end is None or not step:
        return interval(0, high(dim)) if high(dim) is not None else ANY
    if isinstance(dim, int):
        return len(range(*_clamped(dim, start, end, step)))
    if (start == 0 and end >= FAR and step == 1) or (
        start in (-1, FAR) and end <= -FAR and step == -1
    ):
        return dim
    if step == 1 and start < 0 and end >= FAR:
        return interval(min(low(dim), -start), -start)
    if step > 0 and start >= 0 and 0 <= end < FAR:
        most = len(range(start, end, step))
        least = len(range(*_clamped(low(dim), start, end, step)))
        return interval(least, most)
    return interval(0, high(dim))


def _clamped(dim: int, start: int, end: int, step: int) -> tuple[int, int, int]:
    start += dim if start < 0 else 0
    end += dim if end < 0 else 0
    if step > 0:
        return min(max(start, 0), dim), min(max(end, 0), dim), step
    return min(max(start, 0), dim - 1), min(max(end, -1), dim - 1), step


def element_of(content: KnownValue | None, index: int) -> int | None:
    """One element of a vector, where it is a known number."""
    value = content[index] if content is not None and index < len(content) else None
    return value if isinstance(value, int) else None


@infers_shape("Slice")
def shape_of_slice(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Slice: the rest of each axis in `axes`. A slice up to the symbol of an axis is the whole."""
    starts, ends, steps = (known_of(node.input(i)).parts for i in (1, 2, 4))
    count = known_of(node.input(1)).length or known_of(node.input(2)).length
    rank = len(dims)
    if node.input(3) is not None:
        axes = known_axes(node.inputs[3], rank)
    else:
        axes = None if count is None else tuple(range(count))
    if axes is None:
        return unknown(rank)
    require(all(axis < rank for axis in axes))
    whole = dims
    for index, axis in enumerate(axes):
        step = 1 if node.input(4) is None else element_of(steps, index)
        start, end = element_of(starts, index), element_of(ends, index)
        dim = whole[axis]
        up_to = None if ends is None or start != 0 or step != 1 else ends[index]
        if not isinstance(up_to, int) and is_at_least_zero(up_to):
            # Up to a symbol: the whole of that dimension, or as much of another as there is.
            highs = [h for h in (high(dim), bounds(up_to)[1]) if h is not None]
            kept = dim if up_to == dim else interval(0, min(highs, default=None))
        else:
            kept = sliced(dim, start, end, step)
        dims = with_dim(dims, axis, kept)
    return dims


@knows("Slice")
def slice_content(node: Node) -> KnownValue | None:
    """Slice: the remaining elements, if all limits are known."""
    content, shape = known_of(node.inputs[0]).parts, first(node).shape
    starts, ends = known_of(node.inputs[1]).ints, known_of(node.inputs[2]).ints
    if content is None or shape is None or starts is None or ends is None:
        return None
    steps = (1,) * len(starts) if node.input(4) is None else known_of(node.inputs[4]).ints
    axes = tuple(range(len(starts)))
    if node.input(3) is not None:
        axes = known_axes(node.inputs[3], len(shape)) or ()
    if steps is None or len(axes) != len(starts) or not is_static(shape):
        return None
    windows = list(zip(axes, starts, ends, steps, strict=True))

    def cut(places: np.ndarray) -> np.ndarray:
        for axis, start, end, step in windows:
            places = places.take(range(*_clamped(places.shape[axis], start, end, step)), axis)
        return places

    return rearranged(content, shape, cut)


def strided_slice_plan(node: Node) -> list[tuple[str, int, int]] | None:
    """The effect of each position of a StridedSlice's begin, in order: ("slice" | "shrink", axis,
    position), ("new", -1, position), and ("keep", axis, -1) for axes that no position reaches.

    None if the plan needs the unknown rank of the input, or the unknown number of positions. If
    the rank is unknown, the plan ends with the last position.
    """
    rank = first(node).rank
    count = known_of(node.inputs[1]).length
    if count is None:
        count = known_of(node.inputs[2]).length
    if count is None or (rank is None and any(node.attributes["ellipsis_mask"])):
        return None

    def mask(name: str) -> tuple[int, ...]:
        positions = tuple(node.attributes[name])
        return (positions + (0,) * count)[:count]

    ellipsis, new, shrink = (
        mask(n) for n in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    )
    consumed = sum(1 for e, n in zip(ellipsis, new, strict=True) if not e and not n)
    if rank is None:
        rank = consumed  # The axes behind stay as they are, however many there are.
    plan: list[tuple[str, int, int]] = []
    axis = 0
    for position in range(count):
        if ellipsis[position]:
            for _ in range(rank - consumed):
                plan.append(("keep", axis, -1))
                axis += 1
        elif new[position]:
            plan.append(("new", -1, position))
        else:
            plan.append(("shrink" if shrink[position] else "slice", axis, position))
            axis += 1
    plan.extend(("keep", a, -1) for a in range(axis, rank))
    return plan


def masked(node: Node, name: str, position: int) -> bool:
    """Whether bit `position` of a mask of a StridedSlice is set."""
    mask = node.attributes[name]
    return position < len(mask) and bool(mask[position])


def _limits(node: Node, position: int) -> tuple[int | None, int | None, int | None]:
    """Start, end and step of a position of a StridedSlice, the masks applied, as far as known."""
    start, stop, step = (element_of(known_of(node.input(i)).parts, position) for i in (1, 2, 3))
    step = 1 if node.input(3) is None else step
    forward = (step or 1) > 0
    if masked(node, "begin_mask", position):
        start = 0 if forward else FAR
    if masked(node, "end_mask", position):
        stop = FAR if forward else -FAR
    return start, stop, step


@knows("StridedSlice")
def strided_slice_content(node: Node) -> KnownValue | None:
    """StridedSlice: elements of a vector, where all limits are known."""
    content = known_of(node.inputs[0]).parts
    plan = strided_slice_plan(node)
    begin, end = known_of(node.inputs[1]).ints, known_of(node.inputs[2]).ints
    if content is None or plan is None or begin is None or end is None:
        return None
    if (first(node).rank or 0) > 1:
        return None
    for kind, _, position in plan:
        if kind == "shrink":
            return (content[begin[position]],)
        if kind == "slice":
            start, stop, step = _limits(node, position)
            if start is None or stop is None or step is None:
                return None
            return tuple(content[i] for i in range(*_clamped(len(content), start, stop, step)))
    return content


def vectors_of_one_length(node: Node) -> must.Constraints:
    """Slice: starts, ends, axes and steps are vectors of one length."""
    lengths = set()
    for value in node.inputs[1:]:
        shape = None if value is None else value.shape
        if shape is not None and len(shape) != 1:
            yield f"starts, ends, axes and steps are vectors, not {format_shape(shape)}"
        lengths |= {dim for dim in shape or () if isinstance(dim, int)}
    if len(lengths) > 1:
        yield f"its starts, ends, axes and steps are {must.Shapes(node.inputs)}, of several lengths"


must.hold("Slice", must.has_rank(1), must.axes_in(3), vectors_of_one_length)
must.hold("SliceScatter", must.axes_in(5))


@guards("Slice")
def _slice(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Slice: it is safe for any places, if axes and steps are known."""
    if node.inputs[0] is None or node.inputs[0].rank is None:
        raise Unsafe("the rank of its input is not known")
    for value in node.inputs[3:]:
        ints = known_of(value).ints if value is not None else ()
        if ints is None or (value is node.input(4) and 0 in ints):
            raise Unsafe("data decide its axes or steps")
    return None
