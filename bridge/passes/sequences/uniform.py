"""Sequences of tensors of one shape, as one tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import ANY, Dim, Element, Shape, TensorType, is_static
from bridge.passes.sequences.form import Form, Sequence
from bridge.passes.sequences.ragged import Ragged, around, count_of
from bridge.passes.sequences.tensors import Plain, TensorForm


@dataclass(frozen=True)
class Uniform(Sequence):
    """A sequence whose length is only known at run time and whose elements all have one shape:
    `data`, [length, *shape]. If the shape is open, other such sequences may have another shape."""

    parts = ("data",)

    data: Value
    element: Element
    shape: tuple[Dim, ...]

    @property
    def item_element(self) -> Element:
        return self.element

    @property
    def item_ranks(self) -> set[int]:
        return {len(self.shape)}

    def item_shapes(self) -> set[Shape]:
        return {self.shape}

    def leaf_types(self) -> list[TensorType]:
        return [TensorType(self.element, (ANY, *self.shape))]

    def structure(self, exact: bool = False) -> object:
        return Uniform, self.shape

    def hold(self, b: Builder, form: Form, name: str) -> Form:
        if isinstance(form, Uniform):
            return form
        items = form.leaves()
        if not items:
            return self.dummy(b)
        lines = [b.op("Unsqueeze", item, [0]) for item in items]
        return replace(self, data=b.op("Concat", *lines, axis=0))

    def dummy(self, b: Builder) -> Uniform:
        sizes = (dim if isinstance(dim, int) else 1 for dim in self.shape)
        return replace(self, data=b.constant(np.zeros((0, *sizes), self.element.dtype)))

    def to_ragged(self, b: Builder, name: str, like: Ragged | None = None) -> Ragged:
        rank = len(self.shape)
        count = count_of(b, self.data)
        if is_static(self.shape):
            line = b.constant(np.array(self.shape, np.int64).reshape(1, rank))
        else:
            line = b.op("Unsqueeze", b.op("Shape", self.data, start=1), [0])
        shapes = b.op("Expand", line, b.op("Concat", count, [rank], axis=0))
        data = b.op("Reshape", self.data, [-1])
        return Ragged(data, shapes, self.element, rank).to_ragged(b, name, like)

    def length(self, b: Builder) -> Value:
        return b.size(self.data, 0)

    def _of(self, b: Builder, *parts: Value) -> Uniform:
        return replace(self, data=b.op("Concat", *parts, axis=0))

    def at(self, b: Builder, index: Value, name: str) -> TensorForm:
        # A negative index counts from the end there, too.
        return Plain(b.op("Gather", self.data, b.scalar(b.as_i64(index)), 0))

    def insert(self, b: Builder, value: TensorForm, index: Value | None, name: str) -> Sequence:
        if (
            not isinstance(value, Plain)
            or not is_static(self.shape)
            or value.value.shape != self.shape
        ):
            return self.to_ragged(b, name).insert(b, value, index, name)
        added = b.op("Unsqueeze", value.value, [0])
        if index is None:
            return self._of(b, self.data, added)
        line = b.vector(b.as_i64(index))
        before = self.data[:line]
        return self._of(b, before, added, self.data[line:])

    def erase(self, b: Builder, index: Value | None, name: str) -> Uniform:
        line, after = around(b, index, self.length(b))
        before = self.data[:line]
        if after is None:
            return replace(self, data=before)
        return self._of(b, before, self.data[after:])

    def concat(self, b: Builder, axis: int, name: str) -> TensorForm:
        axis %= len(self.shape)
        stacked = b.from_first(self.data, axis, len(self.shape) + 1)
        if is_static(self.shape):
            middle = b.op("Reshape", self.length(b) * self.shape[axis], [1])
            head, tail = (b.constant(np.array(dims, np.int64))
                          for dims in (self.shape[:axis], self.shape[axis + 1 :]))  # fmt: skip
        else:
            sizes, end = b.op("Shape", stacked), len(self.shape) + 1
            head, tail = sizes[:axis], sizes[axis + 2 : end]
            count, each = (sizes[place : place + 1] for place in (axis, axis + 1))
            middle = count * each
        shape = b.op("Concat", head, middle, tail, axis=0)
        return Plain(b.op("Reshape", stacked, shape, allowzero=True))

    def stack(self, b: Builder, axis: int, name: str) -> TensorForm:
        rank = len(self.shape) + 1
        return Plain(b.from_first(self.data, axis % rank, rank))
