"""Operations on sequences whose elements all have one known shape, in tensor operators."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import I64_MAX
from bridge.passes.sequences.forms import Uniform
from bridge.passes.sequences.ragged import position


def length(b: Builder, form: Uniform) -> Value:
    """The number of elements, an i64 scalar."""
    return b.op("Gather", b.op("Shape", form.data), b.constant(0), b.constant(0))


def _line(b: Builder, form: Uniform, index: Value) -> Value:
    """A position counted from the front, i64 [1]."""
    return b.op("Reshape", position(b, index, length(b, form)), b.constant([1]))


def _cut(b: Builder, form: Uniform, start: Value, end: Value) -> Value:
    return b.op("Slice", form.data, start, end, b.constant([0]))


def _with(b: Builder, form: Uniform, *parts: Value) -> Uniform:
    return Uniform(b.op("Concat", *parts, axis=0), form.element, form.shape)


def at(b: Builder, form: Uniform, index: Value) -> Value:
    """Element `index`."""
    where = position(b, index, length(b, form))
    return b.op("Gather", form.data, where, b.constant(0))


def insert(b: Builder, form: Uniform, value: Value, index: Value | None) -> Uniform:
    """The sequence with `value` before position `index`, or at its end."""
    added = b.op("Unsqueeze", value, b.constant([0]))
    if index is None:
        return _with(b, form, form.data, added)
    line = _line(b, form, index)
    before = _cut(b, form, b.constant([0]), line)
    return _with(b, form, before, added, _cut(b, form, line, b.constant([I64_MAX])))


def erase(b: Builder, form: Uniform, index: Value | None) -> Uniform:
    """The sequence without element `index`, or without its last."""
    line = _line(b, form, b.constant(-1) if index is None else index)
    before = _cut(b, form, b.constant([0]), line)
    behind = _cut(b, form, b.op("Add", line, b.constant([1])), b.constant([I64_MAX]))
    return _with(b, form, before, behind)


def stack(b: Builder, form: Uniform, axis: int) -> Value:
    """All elements joined along a new axis."""
    rank = len(form.shape)
    axis %= rank + 1
    order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
    return form.data if axis == 0 else b.op("Transpose", form.data, b.constant(order))


def concat(b: Builder, form: Uniform, axis: int) -> Value:
    """All elements joined along an axis that they have."""
    axis %= len(form.shape)
    stacked = stack(b, form, axis)
    total = b.op("Mul", length(b, form), b.constant(form.shape[axis]))
    middle = b.op("Reshape", total, b.constant([1]))
    shape = b.op(
        "Concat",
        b.constant(np.array(form.shape[:axis], np.int64)),
        middle,
        b.constant(np.array(form.shape[axis + 1 :], np.int64)),
        axis=0,
    )
    return b.op("Reshape", stacked, shape, allowzero=True)
