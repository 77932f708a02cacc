"""Operations on ragged pairs, in tensor operators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Value
from bridge.neutral.types import ANY, I64, I64_MAX, TensorType, interval
from bridge.operators import Refused
from bridge.passes.sequences.forms import (
    Open,
    Ragged,
    elements,
    leaves,
    ranks_of_item,
    row,
    to_ragged,
    undetermined,
)
from bridge.passes.sequences.open_rank import as_long_as, shapes_as_long_as, unsettled, unview


def scalar(b: Builder, value: Value) -> Value:
    """An integer of one element as an i64 scalar."""
    if value.element is not I64:
        value = b.op("Cast", value, to=I64)
    if value.rank != 0:
        value = b.op("Reshape", value, b.constant(np.zeros(0, np.int64)))
    return value


def _vector(b: Builder, value: Value) -> Value:
    return b.op("Reshape", value, b.constant([1]))


def length(b: Builder, form: Ragged) -> Value:
    """The number of elements, an i64 scalar."""
    return b.op("Gather", b.op("Shape", form.shapes), b.constant(0), b.constant(0))


def sizes(b: Builder, shapes: Value, form: Ragged) -> Value:
    """The number of entries of each element in rows of `form.shapes`, i64 [length]."""
    if form.mixed:
        shapes = _filled(b, shapes)
    if form.rank == 0:
        count = b.op("Slice", b.op("Shape", shapes), b.constant([0]), b.constant([1]))
        return b.op("Expand", b.constant(1), count)
    return b.op("ReduceProd", shapes, b.constant([1]), keepdims=False)


def _filled(b: Builder, shapes: Value) -> Value:
    """Rows of shapes with axes of size 1 in place of those that are not there."""
    return b.op("Where", b.op("Less", shapes, b.constant(0)), b.constant(1), shapes)


def position(b: Builder, index: Value, count: Value) -> Value:
    """A position among `count` elements, from the front; negative ones count from the end. i64
    scalars. What is known to be negative gives at least 0, as all positions are: the bounds of what
    is cut there follow from it, and an engine may take a part of the same bounds for the whole."""
    known = integers(index)
    index = scalar(b, index)
    if known is not None and known[0] >= 0:
        return index
    wrapped = b.op("Add", index, count)
    if known is not None:
        return b.op("Max", wrapped, b.constant(0))
    return b.op("Where", b.op("Less", index, b.constant(0)), wrapped, index)


def _entries_before(b: Builder, form: Ragged, at: Value) -> Value:
    """How many entries of `data` belong to elements before `at`, i64 [1]."""
    before = b.op("Slice", form.shapes, b.constant([0]), _vector(b, at), b.constant([0]))
    return b.op("ReduceSum", sizes(b, before, form), b.constant([0]), keepdims=True)


def _cut(b: Builder, value: Value, start: Value, end: Value) -> Value:
    return b.op("Slice", value, start, end, b.constant([0]))


def at(b: Builder, form: Ragged, index: Value) -> Value | Open:
    """Element `index`."""
    where = position(b, index, length(b, form))
    shape = b.op("Gather", form.shapes, where, b.constant(0))
    if form.mixed:
        own = b.op("Not", b.op("Less", shape, b.constant(0)))
        shape = b.op("Compress", shape, own, axis=0)
    start = _entries_before(b, form, where)
    count = b.op("ReduceProd", shape, b.constant([0]), keepdims=True)
    if form.rank == 0:
        count = b.constant([1])
    piece = _cut(b, form.data, start, b.op("Add", start, count))
    if form.mixed:
        shapes = shapes_as_long_as(ANY if form.rank is None else interval(0, form.rank))
        return Open(piece, as_long_as(shape, shapes), shapes)
    if form.rank == 0:
        shape = b.constant(np.zeros(0, np.int64))
    result = b.op("Reshape", piece, shape, allowzero=True)
    if form.rank is None:
        result.type = TensorType(form.element)
    return result


def insert(b: Builder, form: Ragged, value: Value | Open, index: Value | None) -> Ragged:
    """The sequence with `value` before position `index`, or at its end."""
    ranks = ranks_of_item(value)
    name = next(leaves(value)).name
    if not ranks:
        raise Refused(
            f'the rank of "{name}", which goes into a sequence, is not known; give the '
            "inputs' shapes with --input-shape"
        )
    ranks |= set() if form.rank is None else {form.rank}
    rank, mixed = max(ranks), form.mixed or len(ranks) > 1
    form = to_ragged(b, form, name, replace(form, rank=rank, mixed=mixed))
    shapes = form.shapes
    flat = elements(b, value)
    line_of = row(b, value, rank)
    if index is None:
        data = b.op("Concat", form.data, flat, axis=0)
        return Ragged(data, b.op("Concat", shapes, line_of, axis=0), form.element, rank, mixed)
    where = position(b, index, length(b, form))
    split = _entries_before(b, form, where)
    zero, last, line = b.constant([0]), b.constant([I64_MAX]), _vector(b, where)
    data = b.op("Concat", _cut(b, form.data, zero, split), flat,
                _cut(b, form.data, split, last), axis=0)  # fmt: skip
    shapes = b.op(
        "Concat", _cut(b, shapes, zero, line), line_of, _cut(b, shapes, line, last), axis=0
    )
    return Ragged(data, shapes, form.element, rank, mixed)


def erase(b: Builder, form: Ragged, index: Value | None) -> Ragged:
    """The sequence without element `index`, or without its last."""
    where = position(b, b.constant(-1) if index is None else index, length(b, form))
    after = b.op("Add", where, b.constant(1))
    start, end = _entries_before(b, form, where), _entries_before(b, form, after)
    zero, last = b.constant([0]), b.constant([I64_MAX])
    data = b.op("Concat", _cut(b, form.data, zero, start), _cut(b, form.data, end, last), axis=0)
    shapes = b.op(
        "Concat",
        _cut(b, form.shapes, zero, _vector(b, where)),
        _cut(b, form.shapes, _vector(b, after), last),
        axis=0,
    )
    return Ragged(data, shapes, form.element, form.rank, form.mixed)


def _row_part(b: Builder, row: Value, start: int, end: int) -> Value:
    """Entries `start` to `end` of a shape, 1-D."""
    return b.op("Slice", row, b.constant([start]), b.constant([end]), b.constant([0]))


def _product(b: Builder, part: Value) -> Value:
    return b.op("ReduceProd", part, b.constant([0]), keepdims=True)


def _places(b: Builder, counts: Value, before: Value, behind: Value) -> Value:
    """Where entry (j, a, b) stands in the data of a ragged sequence, i64 [D, A, B].

    The elements are [A, counts[i], B]; j runs through their joined middle axis, of size D.
    """
    ends = b.op("CumSum", counts, b.constant(0))
    total = b.op("ReduceSum", counts, b.constant([0]), keepdims=False)
    lines = b.op("Range", b.constant(0), total, b.constant(1))
    passed = b.op("GreaterOrEqual", b.op("Unsqueeze", lines, b.constant([1])), ends)
    owner = b.op("ReduceSum", b.op("Cast", passed, to=I64), b.constant([1]), keepdims=False)
    count = b.op("Gather", counts, owner, b.constant(0))
    start = b.op("Sub", b.op("Gather", ends, owner, b.constant(0)), count)
    block = b.op("Mul", before, behind)
    base = b.op("Add", b.op("Mul", start, block), b.op("Mul", b.op("Sub", lines, start), behind))
    stride = b.op("Mul", count, behind)

    def along(extent: Value) -> Value:
        size = b.op("Reshape", extent, b.constant(np.zeros(0, np.int64)))
        return b.op("Range", b.constant(0), size, b.constant(1))

    columns = b.op("Unsqueeze", along(before), b.constant([0]))
    rows = b.op("Add", b.op("Unsqueeze", base, b.constant([1])),
                b.op("Mul", b.op("Unsqueeze", stride, b.constant([1])), columns))  # fmt: skip
    return b.op("Add", b.op("Unsqueeze", rows, b.constant([2])), along(behind))


def concat(b: Builder, form: Ragged, axis: int, name: str) -> Value | Open:
    """All elements joined along an axis that they have."""
    rank = _known_rank(form, name)
    if form.mixed:
        return _of_one_rank(b, form, axis, new=False)
    return _concat(b, form, axis % rank, rank)


def _concat(b: Builder, form: Ragged, axis: int, rank: int) -> Value:
    first = b.op("Gather", form.shapes, b.constant(0), b.constant(0))
    head, tail = _row_part(b, first, 0, axis), _row_part(b, first, axis + 1, rank)
    counts = b.op("Gather", form.shapes, b.constant(axis), b.constant(1))
    total = b.op("ReduceSum", counts, b.constant([0]), keepdims=True)
    if axis == 0:
        return b.op("Reshape", form.data, b.op("Concat", total, tail, axis=0), allowzero=True)
    before, behind = _product(b, head), _product(b, tail)
    places = _places(b, counts, before, behind)
    moved = b.op("Transpose", places, b.constant([1, 0, 2]))
    joined = b.op("Gather", form.data, moved, b.constant(0))
    return b.op("Reshape", joined, b.op("Concat", head, total, tail, axis=0), allowzero=True)


def stack(b: Builder, form: Ragged, axis: int, name: str) -> Value | Open:
    """All elements, which have one shape, joined along a new axis."""
    rank = _known_rank(form, name)
    if form.mixed:
        return _of_one_rank(b, form, axis, new=True)
    return _stack(b, form, axis % (rank + 1), rank)


def _stack(b: Builder, form: Ragged, axis: int, rank: int) -> Value:
    count = _vector(b, length(b, form))
    shape = count
    if rank:
        first = b.op("Gather", form.shapes, b.constant(0), b.constant(0))
        shape = b.op("Concat", count, first, axis=0)
    stacked = b.op("Reshape", form.data, shape, allowzero=True)
    if axis == 0:
        return stacked
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    return b.op("Transpose", stacked, b.constant(order))


def _known_rank(form: Ragged, name: str) -> int:
    if form.rank is None:
        raise Refused(undetermined(name))
    return form.rank


def _of_one_rank(b: Builder, form: Ragged, axis: int, new: bool) -> Value | Open:
    """The elements joined where their ranks may differ: those that are there have one rank, for
    otherwise nothing can join them. It is known at run time alone, so they are joined as views of
    the largest rank, by whose end the axis counts from the same side."""
    assert form.rank is not None
    largest, front = form.rank, axis >= 0
    first = b.op("Gather", form.shapes, b.constant(0), b.constant(0))
    own = b.op("GreaterOrEqual", first, b.constant(0))
    rank = b.op("ReduceSum", b.op("Cast", own, to=I64), b.constant([0]), keepdims=True)
    shapes = form.shapes
    if not front:
        # A row [2, 3, -1] becomes [-1, 2, 3].
        across = b.constant([1])
        end = b.op("Slice", shapes, rank, b.constant([I64_MAX]), across)
        start = b.op("Slice", shapes, b.constant([0]), rank, across)
        moved = b.op("Concat", end, start, axis=1)
        shapes = b.op("Reshape", moved, b.constant([-1, largest]))
    shapes = _filled(b, shapes)
    views = Ragged(form.data, shapes, form.element, largest)
    if new:
        joined = _stack(b, views, axis % (largest + 1), largest)
        rank = b.op("Add", rank, b.constant([1]))
    else:
        joined = _concat(b, views, axis % largest, largest)
    least = axis + 1 if front else -axis
    most = largest + new
    known = shapes_as_long_as(interval(max(least, int(new)), most))
    if known is None:
        raise unsettled(f"its elements have up to {largest} axes")
    return unview(b, joined, rank, front, known)


def split(b: Builder, value: Value, axis: int, counts: Value, keepdims: bool) -> Ragged:
    """A tensor cut along an axis into parts of sizes `counts`, i64 [length]."""
    rank = value.rank
    if rank is None or value.element is None:
        raise Refused(
            f'the rank of "{value.name}", which is split into a sequence, is not known; give the '
            "inputs' shapes with --input-shape"
        )
    shape = b.op("Shape", value)
    head, tail = _row_part(b, shape, 0, axis), _row_part(b, shape, axis + 1, rank)
    number = b.op("Shape", counts)

    def tiled(part: Value, width: int) -> list[Value]:
        if width == 0:
            return []
        return [b.op("Expand", part, b.op("Concat", number, b.constant([width]), axis=0))]

    middle = [b.op("Unsqueeze", counts, b.constant([1]))] if keepdims else []
    columns = [*tiled(head, axis), *middle, *tiled(tail, rank - axis - 1)]
    own = rank if keepdims else rank - 1
    if columns:
        shapes = b.op("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
    else:
        shapes = b.op("Expand", b.constant(np.zeros((1, 0), np.int64)),
                      b.op("Concat", number, b.constant([0]), axis=0))  # fmt: skip
    if axis == 0:
        data = b.op("Reshape", value, b.constant([-1]))
        return Ragged(data, shapes, value.element, own)
    before, behind = _product(b, head), _product(b, tail)
    places = _places(b, counts, before, behind)
    order = [axis, *range(axis), *range(axis + 1, rank)]
    lines = b.op("Reshape", b.op("Transpose", value, b.constant(order)), b.constant([-1]))
    # Entry k of `lines` belongs at places[k]; the inverse permutation is their order.
    flat = b.op("Reshape", places, b.constant([-1]))
    data = b.op("ScatterElements", lines, flat, lines, b.constant(0))
    return Ragged(data, shapes, value.element, own)


def chunks(b: Builder, dim: Value, size: Value) -> Value:
    """Sizes of the parts when an axis of `dim` (i64 [1]) is cut into parts of `size` (a scalar):
    all alike but a smaller last one. i64 [length]."""
    total = b.op("Reshape", dim, b.constant(np.zeros(0, np.int64)))
    starts = b.op("Range", b.constant(0), total, size)
    return b.op("Min", b.op("Sub", total, starts), size)
