"""Taking parts and joining borders: Slice, StridedSlice, Split, Pad."""

from __future__ import annotations

import numpy as np

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers, knows
from bridge.neutral.inference.dims import (
    Content,
    axis_of,
    content_of,
    dim_sum,
    known_axes,
    known_integers,
    length_of,
    rearranged,
    unknown,
    with_dim,
)
from bridge.neutral.types import ANY, Dim, Shape, TensorType, Type, high, interval, is_static, low

FAR = 1 << 30
"""A bound at least this large means the end of the axis, in whatever integer type."""


def sliced(dim: Dim, start: int | None, end: int | None, step: int | None) -> Dim:
    """What is left of a dimension by `start:end:step` with ONNX's clamping."""
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


def _element(content: Content | None, index: int) -> int | None:
    value = content[index] if content is not None and index < len(content) else None
    return value if isinstance(value, int) else None


@infers("Slice")
def slice_(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    starts, ends, steps = (content_of(node.input(i)) for i in (1, 2, 4))
    count = length_of(node.input(1)) or length_of(node.input(2))
    rank = len(data.shape)
    if node.input(3) is not None:
        axes = known_axes(node.inputs[3], rank)
    else:
        axes = None if count is None else tuple(range(count))
    if axes is None:
        return [TensorType(data.element, unknown(rank))]
    dims: tuple[Dim, ...] = data.shape
    for index, axis in enumerate(axes):
        step = 1 if node.input(4) is None else _element(steps, index)
        start, end = _element(starts, index), _element(ends, index)
        dim = data.shape[axis]
        if start == 0 and step == 1 and ends is not None and isinstance(ends[index], str):
            # Up to a symbol: the whole of that dimension, or as much of another as there is.
            kept = dim if ends[index] == dim else interval(0, high(dim))
        else:
            kept = sliced(dim, start, end, step)
        dims = with_dim(dims, axis, kept)
    return [TensorType(data.element, dims)]


@knows("Slice")
def slice_content(node: Node) -> Content | None:
    content, shape = content_of(node.inputs[0]), first(node).shape
    starts, ends = known_integers(node.inputs[1]), known_integers(node.inputs[2])
    if content is None or shape is None or starts is None or ends is None:
        return None
    steps = (1,) * len(starts) if node.input(4) is None else known_integers(node.inputs[4])
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
    """What each position of a StridedSlice's begin does, in order: ("slice" | "shrink", axis,
    position), ("new", -1, position), and ("keep", axis, -1) for axes that no position reaches.

    None where the input's rank or the number of positions is not known and matters; of an input
    of unknown rank the plan ends with the last position.
    """
    rank = first(node).rank
    count = length_of(node.inputs[1])
    if count is None:
        count = length_of(node.inputs[2])
    if count is None or (rank is None and any(node.attributes["ellipsis_mask"])):
        return None

    def mask(name: str) -> tuple[int, ...]:
        given = tuple(node.attributes[name])
        return (given + (0,) * count)[:count]

    ellipsis, new, shrink = (
        mask(n) for n in ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    )  # fmt: skip
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


@infers("StridedSlice")
def strided_slice(node: Node) -> list[Type]:
    data = first(node)
    plan = strided_slice_plan(node)
    if plan is None or data.shape is None:
        return [TensorType(data.element)]
    begin, end, stride = (content_of(node.input(i)) for i in (1, 2, 3))
    dims: list[Dim] = []
    for kind, axis, position in plan:
        if kind == "keep":
            dims.append(data.shape[axis])
        elif kind == "new":
            dims.append(1)
        elif kind == "slice":
            step = 1 if node.input(3) is None else _element(stride, position)
            start, stop = _element(begin, position), _element(end, position)
            forward = (step or 1) > 0
            if masked(node, "begin_mask", position):
                start = 0 if forward else FAR
            if masked(node, "end_mask", position):
                stop = FAR if forward else -FAR
            dims.append(sliced(data.shape[axis], start, stop, step))
    return [TensorType(data.element, tuple(dims))]


@knows("StridedSlice")
def strided_slice_content(node: Node) -> Content | None:
    content = content_of(node.inputs[0])
    plan = strided_slice_plan(node)
    begin, end = known_integers(node.inputs[1]), known_integers(node.inputs[2])
    stride = (1,) * 8 if node.input(3) is None else known_integers(node.inputs[3])
    if content is None or plan is None or begin is None or end is None or stride is None:
        return None
    for kind, _, position in plan:
        if kind == "shrink":
            return (content[begin[position]],)
        if kind == "slice":
            step = stride[position]
            start, stop = begin[position], end[position]
            if masked(node, "begin_mask", position):
                start = 0 if step > 0 else FAR
            if masked(node, "end_mask", position):
                stop = FAR if step > 0 else -FAR
            return tuple(content[i] for i in range(*_clamped(len(content), start, stop, step)))
    return content


def split_lengths(node: Node) -> tuple[Dim, ...]:
    """The size of every part of a Split, VariadicSplit or ir::Split along its axis."""
    count = len(node.outputs)
    data = first(node).shape
    axis = split_axis(node)
    dim = ANY if data is None or axis is None else data[axis]
    lengths = node.input(2) if node.op == "VariadicSplit" else node.input(1)
    if node.op == "VariadicSplit" or (node.op == "Split" and lengths is not None):
        known = content_of(lengths)
        if known is None:
            return (ANY,) * count
        if -1 in known and isinstance(dim, int) and all(isinstance(k, int) for k in known):
            rest = dim - sum(k for k in known if isinstance(k, int) and k >= 0)
            known = tuple(rest if k == -1 else k for k in known)
        return tuple(ANY if k is None or k == -1 else k for k in known)
    if not isinstance(dim, int):
        return (ANY,) * count
    part = -(-dim // count)
    last = dim - part * (count - 1)
    # Fewer elements than parts can hold: the node is wrong, and hopefully in a branch not taken.
    return (*(part,) * (count - 1), last) if last >= 0 else (ANY,) * count


def split_axis(node: Node) -> int | None:
    """The axis of a Split, VariadicSplit or ir::Split, None where it is not known."""
    rank = first(node).rank
    if rank is None:
        return None
    if node.op == "Split":
        return axis_of(node, rank)
    axis = known_integers(node.inputs[1])
    return None if axis is None else axis[0] % rank


@infers("Split", "ir::Split", "VariadicSplit")
def split(node: Node) -> list[Type]:
    data = first(node)
    axis = split_axis(node)
    if data.shape is None or axis is None:
        return [TensorType(data.element, unknown(data.rank))] * len(node.outputs)
    lengths = split_lengths(node)
    _split_content(node, lengths)
    return [TensorType(data.element, with_dim(data.shape, axis, length)) for length in lengths]


def _split_content(node: Node, lengths: tuple[Dim, ...]) -> None:
    """Hands every part of a vector its elements; a content function speaks of one output only."""
    content = content_of(node.inputs[0])
    if content is None or not all(isinstance(length, int) for length in lengths):
        return
    at = 0
    for output, length in zip(node.outputs, lengths, strict=True):
        assert isinstance(length, int)
        output.content = content[at : at + length]
        at += length


def padded(dims: Shape, begin: Content | None, end: Content | None, axes: tuple[int, ...]) -> Shape:
    """A shape with paddings added to `axes`."""
    if dims is None:
        return None
    for index, axis in enumerate(axes):
        front, back = _element(begin, index), _element(end, index)
        if front is None or back is None:
            dims = with_dim(dims, axis, ANY)
        elif front + back:
            dim = dims[axis]
            if front + back > 0:
                dims = with_dim(dims, axis, dim_sum((dim, front, back)))
            else:
                dims = with_dim(dims, axis, dim + front + back if isinstance(dim, int) else ANY)
    return dims


@infers("Pad")
def pad(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    axes: tuple[int, ...] | None = tuple(range(len(data.shape)))
    if node.input(3) is not None:
        axes = known_axes(node.inputs[3], len(data.shape))
    if axes is None:
        return [TensorType(data.element, unknown(data.rank))]
    pads = content_of(node.inputs[1])
    half = len(axes)
    begin, end = (None, None) if pads is None else (pads[:half], pads[half:])
    return [TensorType(data.element, padded(data.shape, begin, end, axes))]


@infers("ir::Pad")
def ir_pad(node: Node) -> list[Type]:
    data = first(node)
    begin, end = content_of(node.inputs[1]), content_of(node.inputs[2])
    axes = () if data.shape is None else tuple(range(len(data.shape)))
    return [TensorType(data.element, padded(data.shape, begin, end, axes))]
