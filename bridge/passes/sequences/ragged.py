"""Sequences of tensors of any sizes, as a pair of tensors.

A negative position counts from the end, also where tensors are gathered or cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, I64, I64_MAX, Element, TensorType, interval
from bridge.passes.sequences.form import Form, Sequence, rank_not_known, undetermined
from bridge.passes.sequences.shape_vectors import (
    as_long_as,
    shapes_as_long_as,
    unsettled,
)
from bridge.passes.sequences.tensors import Open, Plain, TensorForm, unview


@dataclass(frozen=True)
class Ragged(Sequence):
    """A sequence whose length is only known at run time. `data`, 1-D, has all elements flattened
    and joined; `shapes`, i64 [length, rank], has their shapes. `rank` is None while nothing
    determines it. If elements differ in rank (`mixed`), it is the largest rank, and the rows of the
    other elements end in -1s."""

    parts = "data", "shapes"

    data: Value
    shapes: Value
    element: Element
    rank: int | None
    mixed: bool = False

    @property
    def item_element(self) -> Element:
        return self.element

    @property
    def item_ranks(self) -> set[int]:
        return set() if self.rank is None else {self.rank}

    def leaf_types(self) -> list[TensorType]:
        rows = (ANY, ANY if self.rank is None else self.rank)
        return [TensorType(self.element, (ANY,)), TensorType(I64, rows)]

    def structure(self, exact: bool = False) -> object:
        return Ragged, self.rank, self.mixed

    def hold(self, b: Builder, form: Form, name: str) -> Form:
        assert isinstance(form, Sequence)
        return form.to_ragged(b, name, self)

    def dummy(self, b: Builder) -> Ragged:
        return empty(b, self.element, self.rank, self.mixed)

    def to_ragged(self, b: Builder, name: str, like: Ragged | None = None) -> Ragged:
        if like is None or like.rank is None:
            return self if like is None else replace(self, mixed=self.mixed or like.mixed)
        shapes = self._widened(b, like.rank)
        return replace(self, shapes=shapes, rank=like.rank, mixed=self.mixed or like.mixed)

    def _widened(self, b: Builder, rank: int) -> Value:
        """The shapes in rows of so many entries."""
        if rank == self.rank:
            return self.shapes
        if self.rank is None:
            # If nothing determines the rank of the elements, the sequence is empty.
            return b.op("Reshape", self.shapes, [0, rank], allowzero=True)
        count = count_of(b, self.shapes)
        size = b.op("Concat", count, [rank - self.rank], axis=0)
        return b.op("Concat", self.shapes, b.op("Expand", -1, size), axis=1)

    def length(self, b: Builder) -> Value:
        return b.size(self.shapes, 0)

    def _counts(self, b: Builder, shapes: Value) -> Value:
        """The number of entries of each element in rows of `shapes`, i64 [length]."""
        if self.mixed:
            shapes = _with_ones(b, shapes)
        if self.rank == 0:
            count = count_of(b, shapes)
            return b.op("Expand", 1, count)
        if self.rank == 1:
            return b.reshape(shapes, -1)
        return b.op("ReduceProd", shapes, [1], keepdims=False)

    def _entries_before(self, b: Builder, line: Value) -> Value:
        """How many entries of `data` belong to elements before a place, both i64 [1]."""
        before = self.shapes[:line]
        return b.op("ReduceSum", self._counts(b, before), [0], keepdims=True)

    def at(self, b: Builder, index: Value, name: str) -> TensorForm:
        index = b.as_i64(index)
        shape = b.op("Gather", self.shapes, b.scalar(index), 0)
        if self.mixed:
            shape = b.op("Compress", shape, ~(shape < 0), axis=0)
        start = self._entries_before(b, b.vector(index))
        count = _product(b, shape)
        if self.rank == 0:
            count = b.constant([1])
        piece = self.data[start : start + count]
        if self.mixed:
            shapes = shapes_as_long_as(ANY if self.rank is None else interval(0, self.rank))
            return Open(piece, as_long_as(shape, shapes), shapes)
        if self.rank == 0:
            shape = b.constant(np.zeros(0, np.int64))
        result = b.op("Reshape", piece, shape, allowzero=True)
        if self.rank is None:
            result.type = TensorType(self.element)
        return Plain(result)

    def insert(self, b: Builder, value: TensorForm, index: Value | None, name: str) -> Ragged:
        inserted = value.leaves()[0].name
        if not value.ranks:
            raise rank_not_known(inserted, "goes into a sequence")
        ranks = value.ranks | self.item_ranks
        rank, mixed = max(ranks), self.mixed or len(ranks) > 1
        form = self.to_ragged(b, inserted, replace(self, rank=rank, mixed=mixed))
        data, shapes = form.data, form.shapes
        entries, row = value.elements(b), value.row(b, rank)
        if index is None:
            data = b.op("Concat", data, entries, axis=0)
            return replace(form, data=data, shapes=b.op("Concat", shapes, row, axis=0))
        line = b.vector(b.as_i64(index))
        split = form._entries_before(b, line)
        data = b.concat(0, data[:split], entries, data[split:])
        shapes = b.concat(0, shapes[:line], row, shapes[line:])
        return replace(form, data=data, shapes=shapes)

    def erase(self, b: Builder, index: Value | None, name: str) -> Ragged:
        line, after = around(b, index, self.length(b))
        start = self._entries_before(b, line)
        data, shapes = self.data[:start], self.shapes[:line]
        if after is not None:
            end = self._entries_before(b, after)
            data = b.concat(0, data, self.data[end:])
            shapes = b.concat(0, shapes, self.shapes[after:])
        return replace(self, data=data, shapes=shapes)

    def concat(self, b: Builder, axis: int, name: str) -> TensorForm:
        if self.rank is None:
            raise undetermined(name)
        if self.mixed:
            return self._of_one_rank(b, axis, new=False)
        axis %= self.rank
        first = b.op("Gather", self.shapes, 0, 0)
        head, tail = first[:axis], first[axis + 1 : self.rank]
        counts = b.op("Gather", self.shapes, axis, 1)
        total = b.op("ReduceSum", counts, [0], keepdims=True)
        if axis == 0:
            shape = b.concat(0, total, tail)
            return Plain(b.op("Reshape", self.data, shape, allowzero=True))
        places = _places(b, counts, _product(b, head), _product(b, tail))
        moved = b.op("Transpose", places, [1, 0, 2])
        entries = b.op("Gather", self.data, moved, 0)
        shape = b.concat(0, head, total, tail)
        return Plain(b.op("Reshape", entries, shape, allowzero=True))

    def stack(self, b: Builder, axis: int, name: str) -> TensorForm:
        if self.rank is None:
            raise undetermined(name)
        if self.mixed:
            return self._of_one_rank(b, axis, new=True)
        shape = b.op("Reshape", self.length(b), [1])
        if self.rank:
            first = b.op("Gather", self.shapes, 0, 0)
            shape = b.concat(0, shape, first)
        stacked = b.op("Reshape", self.data, shape, allowzero=True)
        return Plain(b.from_first(stacked, axis % (self.rank + 1), self.rank + 1))

    def _of_one_rank(self, b: Builder, axis: int, new: bool) -> TensorForm:
        """The elements joined, even if `mixed`. All elements must have one rank, because otherwise
        they cannot be joined, but this rank is only known at run time. So views of the largest rank
        are joined. Their own axes stand at the end from which the axis counts."""
        assert self.rank is not None
        largest, front = self.rank, axis >= 0
        first = b.op("Gather", self.shapes, 0, 0)
        rank = b.op("ReduceSum", b.op("Cast", first >= 0, to=I64), [0], keepdims=True)
        shapes = self.shapes
        if not front:
            # A row [2, 3, -1] becomes [-1, 2, 3].
            across = b.constant([1])
            end = b.op("Slice", shapes, rank, [I64_MAX], across)
            start = b.op("Slice", shapes, [0], rank, across)
            moved = b.op("Concat", end, start, axis=1)
            shapes = b.op("Reshape", moved, [-1, largest])
        views = Ragged(self.data, _with_ones(b, shapes), self.element, largest)
        joined = (views.stack if new else views.concat)(b, axis, "").leaves()[0]
        if new:
            rank += b.constant([1])
        least = axis + 1 if front else -axis
        known = shapes_as_long_as(interval(max(least, int(new)), largest + new))
        if known is None:
            raise unsettled(f"its elements have up to {largest} axes")
        return unview(b, joined, rank, front, known)


def empty(b: Builder, element: Element, rank: int | None, mixed: bool) -> Ragged:
    """A sequence without elements."""
    data = b.constant(np.zeros(0, element.dtype))
    return Ragged(data, b.constant(np.zeros((0, rank or 0), np.int64)), element, rank, mixed)


def count_of(b: Builder, value: Value) -> Value:
    """The size of the first axis, i64 [1]."""
    return b.op("Slice", b.op("Shape", value), [0], [1])


def _with_ones(b: Builder, shapes: Value) -> Value:
    """Rows of shapes with size 1 for each absent axis."""
    return b.where(shapes < 0, 1, shapes)


def _product(b: Builder, sizes: Value) -> Value:
    return sizes if sizes.shape == (1,) else b.op("ReduceProd", sizes, [0], keepdims=True)


def around(b: Builder, index: Value | None, count: Value) -> tuple[Value, Value | None]:
    """A position among `count` elements, without an index the last, and the next one, if there is
    one; i64 [1]. Behind -1 stands no 0, which would be the first position."""
    known = (-1,) if index is None else known_of(index).ints
    if known is not None:
        return b.constant([known[0]]), None if known[0] == -1 else b.constant([known[0] + 1])
    assert index is not None
    line = b.from_the_front(b.vector(b.as_i64(index)), b.vector(count))
    return line, line + b.constant([1])


def _places(b: Builder, counts: Value, before: Value, behind: Value) -> Value:
    """The place of entry (j, a, b) in the data of a ragged sequence, i64 [D, A, B].

    The elements are [A, counts[i], B]; j runs through their joined middle axis, of size D.
    """
    ends = b.op("CumSum", counts, 0)
    total = b.op("ReduceSum", counts, [0], keepdims=False)
    lines = b.op("Range", 0, total, 1)
    passed = b.op("Unsqueeze", lines, [1]) >= ends
    owner = b.op("ReduceSum", b.op("Cast", passed, to=I64), [1], keepdims=False)
    count = b.op("Gather", counts, owner, 0)
    start = b.op("Gather", ends, owner, 0) - count
    base = start * (before * behind) + (lines - start) * behind
    stride = count * behind

    def along(extent: Value) -> Value:
        size = b.op("Reshape", extent, np.zeros(0, np.int64))
        return b.op("Range", 0, size, 1)

    columns = b.op("Unsqueeze", along(before), [0])
    rows = b.op("Unsqueeze", base, [1]) + b.op("Unsqueeze", stride, [1]) * columns  # fmt: skip
    return b.op("Unsqueeze", rows, [2]) + along(behind)


def split(b: Builder, value: Value, axis: int, counts: Value, keepdims: bool) -> Ragged:
    """A tensor of known rank cut along an axis into parts of sizes `counts`, i64 [length]."""
    rank, element = len(value.dims), value.known_element
    shape = b.op("Shape", value)
    head, tail = shape[:axis], shape[axis + 1 : rank]
    number = b.op("Shape", counts)

    def tiled(sizes: Value, width: int) -> list[Value]:
        if width == 0:
            return []
        return [b.op("Expand", sizes, b.op("Concat", number, [width], axis=0))]

    middle = [b.op("Unsqueeze", counts, [1])] if keepdims else []
    columns = [*tiled(head, axis), *middle, *tiled(tail, rank - axis - 1)]
    if columns:
        shapes = b.concat(1, *columns)
    else:
        none = b.constant(np.zeros((1, 0), np.int64))
        shapes = b.op("Expand", none, b.op("Concat", number, [0], axis=0))
    kept_rank = rank if keepdims else rank - 1
    if axis == 0:
        return Ragged(b.op("Reshape", value, [-1]), shapes, element, kept_rank)
    places = _places(b, counts, _product(b, head), _product(b, tail))
    order = [axis, *range(axis), *range(axis + 1, rank)]
    lines = b.op("Reshape", b.op("Transpose", value, order), [-1])
    # Entry k of `lines` belongs at places[k]; the inverse permutation is their order.
    flat = b.op("Reshape", places, [-1])
    data = b.op("ScatterElements", lines, flat, lines, 0)
    return Ragged(data, shapes, element, kept_rank)


def chunks(b: Builder, dim: Value, size: Value) -> Value:
    """The sizes of the parts when an axis of `dim` (i64 [1]) is cut into parts of `size` (a
    scalar). All are equal, except perhaps a smaller last one. i64 [length]."""
    if known_of(size).ints is None:
        # This Reshape fails for no size, where a Range without a step would end the process.
        twice = b.concat(0, b.vector(size), b.vector(size))
        sizes = b.concat(0, b.vector(b.min(b.max(size, 0), 1)), b.constant([2]))
        twice = b.op("Reshape", twice, sizes, allowzero=True)
        size = b.op("ReduceMax", twice, [0, 1], keepdims=False)
    total = b.op("Reshape", dim, np.zeros(0, np.int64))
    return b.min(total - b.op("Range", 0, total, size), size)
