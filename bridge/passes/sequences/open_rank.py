"""Operations on tensors of open rank, in tensor operators.

A view is such a tensor as one of a known rank, no smaller than its own: axes of size 1 stand in
front of its own axes, or behind them, so that negative axes, or the others, still count the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.ports import Sliced
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import ANY, I64_MAX, Dim, TensorType, high, interval, low, meet
from bridge.operators import Refused
from bridge.passes.sequences.forms import Open, joined

MOST_RANKS = 8
"""Ranks that a value may have and be said to have a bound."""


def unsettled(why: str) -> Refused:
    """The refusal of what needs to know more of a rank."""
    return Refused(
        f"{why}; what leaves it one rank helps: the inputs' shapes (--input-shape), or the rank of "
        "the output that it goes to (--output-rank)"
    )


def shapes_of_open(form: Open) -> tuple[tuple[Dim, ...], ...]:
    """The shapes that a tensor may have, one for each rank. Refused where nothing bounds them."""
    if form.shapes is None:
        raise unsettled(
            "nothing bounds the rank of a tensor that it takes: it grows in a Loop, or a shape of "
            "unknown length gives it"
        )
    return form.shapes


def rank_of(b: Builder, form: Open) -> Value:
    """The rank, i64 [1]."""
    return b.op("Shape", form.shape)


def to_rank(b: Builder, form: Open, rank: int) -> Value:
    """The tensor where it has this rank."""
    known = next((s for s in form.shapes or () if len(s) == rank), (ANY,) * rank)
    return _typed(b.op("Reshape", form.data, _sizes(b, form.shape, known), allowzero=True), known)


def _sizes(b: Builder, shape: Value, known: tuple[Dim, ...]) -> Value:
    """A shape vector whose length, and what else is `known`, the target's inference sees."""
    rank = len(known)
    if all(isinstance(dim, int) for dim in known):
        return b.constant(np.array(known, np.int64))
    sizes = b.op("Reshape", shape, b.constant([rank]))
    if not any(isinstance(dim, int) for dim in known):
        return sizes
    parts: list[Value] = []
    start = 0
    while start < rank:
        end, fixed = start + 1, isinstance(known[start], int)
        while end < rank and isinstance(known[end], int) == fixed:
            end += 1
        parts.append(b.constant(list(known[start:end])) if fixed else cut(b, sizes, start, end))
        start = end
    return b.op("Concat", *parts, axis=0)


def _typed(value: Value, shape: tuple[Dim, ...]) -> Value:
    """The value, whose shape is known to be this."""
    value.type = value.declared = meet(value.type, TensorType(value.element, shape))
    return value


def cut(b: Builder, vector: Value, start: int, end: int) -> Value:
    """Some entries of a vector."""
    return b.op("Slice", vector, b.constant([start]), b.constant([end]), b.constant([0]))


def _padded(shape: tuple[Dim, ...], rank: int, front: bool) -> tuple[Dim, ...]:
    ones: tuple[Dim, ...] = (1,) * (rank - len(shape))
    return (*shape, *ones) if front else (*ones, *shape)


def _wide(b: Builder, shape: Value, rank: int, front: bool) -> Value:
    """The first `rank` entries of a shape with 1s behind it, or the last with 1s before it."""
    ones = b.constant([1] * rank)
    if front:
        return cut(b, b.op("Concat", shape, ones, axis=0), 0, rank)
    return cut(b, b.op("Concat", ones, shape, axis=0), -rank, I64_MAX)


def wide(b: Builder, shape: Value, rank: int) -> Value:
    """A shape of at most `rank` entries with 1s before it, i64 [rank]."""
    return b.op("Reshape", _wide(b, shape, rank, False), b.constant([rank]))


def view(b: Builder, form: Open, rank: int, front: bool) -> Value:
    """The tensor with `rank` axes: its own in front, or at the end, and axes of size 1."""
    if rank == 0:
        return to_rank(b, form, 0)
    shapes = (s for s in form.shapes or () if len(s) <= rank)
    known = joined(_padded(shape, rank, front) for shape in shapes)
    (joint,) = known or ((ANY,) * rank,)
    sizes = _sizes(b, _wide(b, form.shape, rank, front), joint)
    return _typed(b.op("Reshape", form.data, sizes, allowzero=True), joint)


def unview(
    b: Builder, value: Value, rank: Value, front: bool, shapes: Iterable[tuple[Dim, ...]]
) -> Value | Open:
    """The tensor of which `value` is a view: its rank, i64 [1], and the shapes it may have."""
    known = joined(shapes)
    shape = b.op("Shape", value)
    if len(known) == 1:
        (only,) = known
        if value.rank == len(only):
            return _typed(value, only)
        part = cut(b, shape, 0, len(only)) if front else cut(b, shape, -len(only), I64_MAX)
        part = _sizes(b, part, only) if only else b.constant(np.zeros(0, np.int64))
        return _typed(b.op("Reshape", value, part, allowzero=True), only)
    zero = b.constant([0])
    if front:
        own = b.op("Slice", shape, zero, rank, zero)
    else:
        start = b.op("Sub", b.constant([value.rank]), rank)
        own = b.op("Slice", shape, start, b.constant([I64_MAX]), zero)
    own = as_long_as(own, known)
    return Open(b.op("Reshape", value, b.constant([-1])), own, known)


def as_long_as(shape: Value, shapes: tuple[tuple[Dim, ...], ...] | None) -> Value:
    """A shape vector that holds one of these shapes."""
    if not shapes:
        return shape
    return _typed(shape, (interval(len(shapes[0]), len(shapes[-1])),))


def without_axis(b: Builder, shape: Value, axis: int) -> Value:
    """A shape vector without one of its entries."""
    ends = [cut(b, shape, 0, axis)] if axis else []
    if axis != -1:
        ends.append(cut(b, shape, axis + 1, I64_MAX))
    return b.op("Concat", *ends, axis=0) if len(ends) > 1 else ends[0]


def with_axis(b: Builder, shape: Value, axis: int) -> Value:
    """A shape vector with one more entry, 1, which is then at `axis`."""
    one = b.constant([1])
    if axis == 0:
        return b.op("Concat", one, shape, axis=0)
    if axis == -1:
        return b.op("Concat", shape, one, axis=0)
    place = axis if axis > 0 else axis + 1
    ends = cut(b, shape, 0, place), cut(b, shape, place, I64_MAX)
    return b.op("Concat", ends[0], one, ends[1], axis=0)


def sliced(b: Builder, form: Open, port: Sliced) -> Open:
    """What a Loop slices of a tensor of open rank: `data`, a view of it, and the shape that the
    parts have."""
    shapes = shapes_of_open(form)
    axis, rank, front = port.axis, len(shapes[-1]), port.axis >= 0
    if port.keepdims:
        raise unsettled("it takes parts of a tensor of open rank that keep their axis")
    shape = without_axis(b, form.shape, axis)
    parts = joined(
        tuple(dim for place, dim in enumerate(whole) if place != axis % len(whole))
        for whole in shapes
        if -len(whole) <= axis < len(whole)
    )
    if not parts:
        raise unsettled(
            f"none of the ranks that it may have has the axis {axis}, along which it is cut"
        )
    return Open(view(b, form, rank, front), as_long_as(shape, parts), parts)


def stacked(b: Builder, form: Open) -> Open:
    """The tensor whose parts along a new first axis are tensors of open rank: `data` [parts,
    elements] and `shape` [parts, rank], of which all rows are alike."""
    count = b.op("Shape", form.shape)
    row = b.op("Slice", b.op("Reshape", form.shape, b.constant([-1])), b.constant([0]),
               cut(b, count, 1, 2), b.constant([0]))  # fmt: skip
    shape = b.op("Concat", cut(b, count, 0, 1), row, axis=0)
    shapes = None if form.shapes is None else tuple((ANY, *known) for known in form.shapes)
    data = b.op("Reshape", form.data, b.constant([-1]))
    return Open(data, as_long_as(shape, shapes), shapes)


def reshaped(b: Builder, form: Open, target: Value, allowzero: bool) -> Open:
    """The tensor in the shape `target`, i64 of unknown length."""
    zero, one = b.constant([0]), b.constant([1])
    shape = target
    if not allowzero:
        longer = b.op("Concat", form.shape, shape, axis=0)
        copied = b.op("Slice", longer, zero, b.op("Shape", shape), zero)
        shape = b.op("Where", b.op("Equal", shape, b.constant(0)), copied, shape)
    if not is_not_negative(target):
        rest = b.op("Less", shape, b.constant(0))
        others = b.op("ReduceProd", b.op("Where", rest, one, shape), zero, keepdims=True)
        # Nothing is left of a tensor without elements.
        left = b.op("Div", b.op("Size", form.data), b.op("Max", others, one))
        shape = b.op("Where", rest, left, shape)
    length = target.dims[0] if target.rank == 1 else ANY
    if shape is not target:
        shape = _typed(shape, (length,))
    return Open(form.data, shape, shapes_as_long_as(length))


def shapes_as_long_as(length: Dim) -> tuple[tuple[Dim, ...], ...] | None:
    """The shapes that a vector of this length may hold; None where there are too many."""
    least, most = low(length), high(length)
    if most is None or most - least >= MOST_RANKS:
        return None
    return tuple((ANY,) * rank for rank in range(least, most + 1))
