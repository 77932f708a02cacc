"""Slice, StridedSlice, SliceScatter, Reverse."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import content_of, length_of
from bridge.neutral.inference.slices import masked, strided_slice_plan
from bridge.neutral.types import I64, I64_MAX
from bridge.rules import Refused, expands
from bridge.rules.idioms import as_i64, vector

FIRST = -I64_MAX
"""The end of a backward slice down to the first element."""


@expands("Slice", target="ir")
def slice_for_ir(b: Builder, node: Node) -> Value | None:
    """IR's Slice-8 must be given its steps; OpenVINO's CPU crashes where the axes are computed."""
    data, starts, ends, axes, steps = (node.input(i) for i in range(5))
    assert data is not None and starts is not None and ends is not None
    if axes is not None and values_of(axes) is None and data.rank:
        return _of_all_axes(b, data.rank, node)
    if steps is not None:
        return None
    count = length_of(starts)
    if count is not None:
        steps = b.like([1] * count, starts)
    else:
        steps = b.op("Expand", b.like([1], starts), b.op("Shape", starts))
    return b.op("Slice", data, starts, ends, axes, steps)


def _of_all_axes(b: Builder, rank: int, node: Node) -> Value:
    """A Slice of computed axes as one of all axes, the others whole."""
    data, starts, ends, axes, steps = (node.input(i) for i in range(5))
    assert axes is not None
    places = b.op("Mod", as_i64(b, axes), b.constant(rank))
    full = [
        b.constant([whole] * rank)
        if bound is None
        else b.op(
            "ScatterElements", b.constant([whole] * rank), places, as_i64(b, bound), b.constant(0)
        )
        for bound, whole in ((starts, 0), (ends, I64_MAX), (steps, 1))
    ]
    return b.op("Slice", data, full[0], full[1], b.constant(np.arange(rank)), full[2])


@expands("StridedSlice", target="onnx")
def strided_slice_for_onnx(b: Builder, node: Node) -> Value:
    """StridedSlice-1: Slice for the axes it cuts, Gather for those it shrinks, Unsqueeze for new
    ones."""
    plan = strided_slice_plan(node)
    if plan is None:
        raise Refused(
            "the rank of the input or the number of slices is not known; "
            "declare the shapes of the graph's inputs"
        )
    x = node.inputs[0]
    cuts = [(axis, position) for kind, axis, position in plan if kind == "slice"]
    cuts = [(axis, at) for axis, at in cuts if not _whole(node, at)]
    if cuts:
        axes = [axis for axis, _ in cuts]
        starts, ends, steps = _bounds(b, node, [at for _, at in cuts])
        x = b.op("Slice", x, starts, ends, b.constant(axes), steps)
    for kind, axis, at in reversed(plan):
        if kind == "shrink":
            index = b.constant(0) if masked(node, "begin_mask", at) else _scalar_at(b, node, at)
            x = b.op("Gather", x, index, b.constant(axis))
    left = [kind for kind, _, _ in plan if kind != "shrink"]
    new = [axis for axis, kind in enumerate(left) if kind == "new"]
    if new:
        x = b.op("Unsqueeze", x, b.constant(new))
    assert x is not None
    return x if x is not node.inputs[0] else b.op("Identity", x)


def _whole(node: Node, at: int) -> bool:
    """Whether position `at` takes all of its axis."""
    stride = content_of(node.input(3))
    forward = node.input(3) is None or (stride is not None and stride[at] == 1)
    begin = content_of(node.inputs[1])
    from_start = masked(node, "begin_mask", at) or (begin is not None and begin[at] == 0)
    return forward and from_start and masked(node, "end_mask", at)


def _scalar_at(b: Builder, node: Node, at: int) -> Value:
    begin = node.inputs[1]
    assert begin is not None
    known = content_of(begin)
    if known is not None and isinstance(known[at], int):
        return b.constant(known[at])
    return b.op("Gather", as_i64(b, begin), b.constant(at), b.constant(0))


def _bounds(b: Builder, node: Node, at: list[int]) -> tuple[Value, Value, Value]:
    """Starts, ends and steps of the positions `at`, the masks applied."""
    begin, end, stride = (_at(b, node.input(i), at) for i in (1, 2, 3))
    assert begin is not None and end is not None
    steps = b.constant([1] * len(at)) if stride is None else stride
    known = values_of(steps)
    result = []
    for name, bounds, ahead, back in (
        ("begin_mask", begin, 0, I64_MAX), ("end_mask", end, I64_MAX, FIRST)
    ):  # fmt: skip
        mask = np.array([masked(node, name, position) for position in at])
        if mask.any() and known is not None:
            far = b.constant(np.where(known < 0, back, ahead))
            bounds = _where(b, mask, far, bounds)
        elif mask.any():
            backward = b.op("Less", steps, b.constant(0))
            far = b.op("Where", backward, b.constant(back), b.constant(ahead))
            bounds = _where(b, mask, far, bounds)
        result.append(bounds)
    return result[0], result[1], steps


def _at(b: Builder, vector: Value | None, at: list[int]) -> Value | None:
    if vector is None:
        return None
    known = values_of(vector)
    if known is not None:
        return b.constant(known[at], I64)
    return b.op("Gather", as_i64(b, vector), b.constant(at), b.constant(0))


def _where(b: Builder, mask: np.ndarray, yes: Value, no: Value) -> Value:
    known = [values_of(yes), values_of(no)]
    if known[0] is not None and (known[1] is not None or mask.all()):
        return b.constant(np.where(mask, known[0], 0 if known[1] is None else known[1]), I64)
    return b.op("Where", b.constant(mask), yes, no)


@expands("Reverse", target="onnx")
def reverse_for_onnx(b: Builder, node: Node) -> Value:
    """Reverse-1: axes as numbers, or as a mask."""
    x, axes = node.inputs[0], node.inputs[1]
    assert axes is not None
    known = values_of(axes)
    if node.attributes["mode"] == "mask":
        if known is not None:
            axes = b.constant(np.flatnonzero(known))
        else:
            axes = b.op("Squeeze", b.op("NonZero", axes), b.constant([0]))
    axes = vector(b, as_i64(b, axes))
    count = length_of(axes)
    if count == 0:
        return b.op("Identity", x)
    if count is not None:
        starts, ends = b.constant([-1] * count), b.constant([FIRST] * count)
    else:
        shape = b.op("Shape", axes)
        starts = b.op("Expand", b.constant([-1]), shape)
        ends = b.op("Expand", b.constant([FIRST]), shape)
    return b.op("Slice", x, starts, ends, axes, starts)


@expands("SliceScatter", target="onnx")
def slice_scatter_for_onnx(b: Builder, node: Node) -> Value:
    """SliceScatter-15: slice the numbers of the elements, and scatter to those."""
    data, updates, start, stop, step, axes = (node.input(i) for i in range(6))
    flat, shape = b.constant([-1]), b.op("Shape", data)
    count = b.op("Size", data)
    numbers = b.op("Reshape", b.op("Range", b.constant(0), count, b.constant(1)), shape)
    places = b.op("Slice", numbers, start, stop, axes, step)
    scattered = b.op(
        "ScatterElements",
        b.op("Reshape", data, flat),
        b.op("Reshape", places, flat),
        b.op("Reshape", updates, flat),
        b.constant(0),
    )
    return b.op("Reshape", scattered, shape)
