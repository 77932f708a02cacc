"""Tensors of known rank, and of open rank, which is only known at run time.

A view is a tensor of open rank as a tensor of a known, larger or equal rank. Axes of size 1 stand
in front of its own axes, so that negative axes keep their meaning. Or they stand behind them, so
that the other axes do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.ports import Sliced
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import (
    ANY,
    I64,
    I64_MAX,
    Dim,
    Element,
    TensorType,
    interval,
    is_static,
    size_of,
)
from bridge.operators import Refused
from bridge.options.spoken import keyword
from bridge.passes.sequences.form import Form
from bridge.passes.sequences.shape_vectors import (
    Dims,
    PossibleShapes,
    as_long_as,
    filled_up,
    joined,
    padded,
    shapes_as_long_as,
    sizes,
    typed,
    unsettled,
    without_axis,
)


class TensorForm(Form):
    """A tensor."""

    why_unbounded: str
    """The reason why its rank has no bound, if it has none."""

    @property
    @abstractmethod
    def element(self) -> Element:
        """The element type. Refused if it is not known."""

    @abstractmethod
    def known_shapes(self) -> PossibleShapes:
        """The shapes that the tensor may have."""

    @property
    def ranks(self) -> set[int]:
        """The ranks that the tensor may have; none if they have no bound."""
        return {len(shape) for shape in self.known_shapes() or ()}

    def bounded(self) -> tuple[Dims, ...]:
        """The shapes that the tensor may have. Refused if they have no bound."""
        shapes = self.known_shapes()
        if shapes is None:
            raise unsettled(self.why_unbounded)
        return shapes

    @abstractmethod
    def at_rank(self, b: Builder, rank: int) -> Value:
        """The tensor, if it has this rank."""

    @abstractmethod
    def view(self, b: Builder, rank: int, front: bool) -> Value:
        """The tensor with `rank` axes: its own in front, or at the end, and axes of size 1. One of
        known rank is its own view."""

    @abstractmethod
    def rank(self, b: Builder) -> Value:
        """The rank, i64 [1]."""

    @abstractmethod
    def elements(self, b: Builder) -> Value:
        """The elements in their order, 1-D."""

    @abstractmethod
    def row(self, b: Builder, rank: int) -> Value:
        """The shape as a row, i64 [1, rank], with -1s behind it."""

    @abstractmethod
    def to_open(self, b: Builder, like: Open | None = None) -> Open:
        """The tensor as a pair, with the possible shapes of `like`, if it is given."""

    def either(self, other: TensorForm) -> TensorForm:
        """A form that can hold both tensors: of open rank if they differ in rank (its leaves are of
        no use)."""
        one, two = self.known_shapes(), other.known_shapes()
        plain = isinstance(self, Plain) and isinstance(other, Plain)
        if plain and (one is None or two is None or len(one[0]) == len(two[0])):
            return self
        shapes = None if one is None or two is None else joined((*one, *two))
        return Open(self.leaves()[0], self.leaves()[0], shapes)


@dataclass(frozen=True)
class Plain(TensorForm):
    """A tensor of known rank, or a tensor that is only passed on."""

    parts = ("value",)

    value: Value

    why_unbounded = "the rank of one of its inputs is not known"

    def known_shapes(self) -> PossibleShapes:
        return None if self.value.shape is None else (self.value.shape,)

    @property
    def element(self) -> Element:
        return _known_element(self.value)

    def leaf_types(self) -> list[TensorType]:
        return [self.value.tensor]

    def structure(self, exact: bool = False) -> object:
        return Plain

    def hold(self, b: Builder, form: Form, name: str) -> Form:
        return form

    def dummy(self, b: Builder) -> Plain:
        value = self.value
        if value.element is None or value.shape is None:
            raise Refused(
                f'nothing determines the rank of "{value.name}", the value of an optional; give it '
                f"with {keyword('input_shapes', {value.name: [None, 3]})}"
            )
        shape = [dim if isinstance(dim, int) else 1 for dim in value.shape]
        zero = b.filled(0, (), value.element)
        return Plain(b.op("Expand", zero, shape) if shape else zero)

    def at_rank(self, b: Builder, rank: int) -> Value:
        return self.value

    def view(self, b: Builder, rank: int, front: bool) -> Value:
        return self.value

    def rank(self, b: Builder) -> Value:
        return b.constant([self.value.rank])

    def elements(self, b: Builder) -> Value:
        return b.op("Reshape", self.value, [-1])

    def row(self, b: Builder, rank: int) -> Value:
        missing = rank - (self.value.rank or 0)
        shape = b.op("Shape", self.value)
        if missing:
            shape = b.op("Concat", shape, [-1] * missing, axis=0)
        return b.op("Unsqueeze", shape, [0])

    def to_open(self, b: Builder, like: Open | None = None) -> Open:
        data = self.value if self.value.rank == 1 else self.elements(b)
        shapes = self.known_shapes() if like is None else like.shapes
        return Open(data, b.op("Shape", self.value), shapes)


@dataclass(frozen=True)
class Open(TensorForm):
    """A tensor whose rank is only known at run time. `data`, 1-D, has its elements in their order;
    `shape` is i64 [rank]. `shapes` are its possible shapes."""

    parts = "data", "shape"

    data: Value
    shape: Value
    shapes: PossibleShapes

    why_unbounded = (
        "the rank of its input has no bound: it grows in a Loop, or comes from a shape of unknown "
        "length"
    )

    @property
    def element(self) -> Element:
        return _known_element(self.data)

    def known_shapes(self) -> PossibleShapes:
        return self.shapes

    def leaf_types(self) -> list[TensorType]:
        ranks = sorted(self.ranks)
        rank = interval(ranks[0], ranks[-1]) if ranks else ANY
        return [TensorType(self.element, (ANY,)), TensorType(I64, (rank,))]

    def structure(self, exact: bool = False) -> object:
        return Open, (self.shapes or ()) if exact else ()

    def hold(self, b: Builder, form: Form, name: str) -> Form:
        return tensor(form).to_open(b, self)

    def dummy(self, b: Builder) -> Open:
        data = b.filled(0, (1,), self.element)
        rank = len(self.shapes[0]) if self.shapes else 0
        return Open(data, b.constant(np.ones(rank, np.int64)), self.shapes)

    def at_rank(self, b: Builder, rank: int) -> Value:
        known = next((s for s in self.shapes or () if len(s) == rank), (ANY,) * rank)
        return self._reshaped(b, sizes(b, self.shape, known), known)

    def view(self, b: Builder, rank: int, front: bool) -> Value:
        if rank == 0:
            return self.at_rank(b, 0)
        shapes = (s for s in self.shapes or () if len(s) <= rank)
        known = joined(padded(shape, rank, front) for shape in shapes)
        (joint,) = known or ((ANY,) * rank,)
        return self._reshaped(b, sizes(b, filled_up(b, self.shape, rank, front), joint), joint)

    def _reshaped(self, b: Builder, shape: Value, known: Dims) -> Value:
        return typed(b.op("Reshape", self.data, shape, allowzero=True), known)

    def rank(self, b: Builder) -> Value:
        return b.op("Shape", self.shape)

    def elements(self, b: Builder) -> Value:
        return self.data

    def row(self, b: Builder, rank: int) -> Value:
        filled = b.op("Concat", self.shape, [-1] * rank, axis=0)
        return b.op("Reshape", filled[:rank], [1, rank])

    def to_open(self, b: Builder, like: Open | None = None) -> Open:
        return self if like is None else replace(self, shapes=like.shapes)

    def settled(self, b: Builder) -> TensorForm:
        """The tensor as a plain one, if only one rank is possible."""
        if self.shapes is None or len(self.shapes) != 1:
            return self
        return Plain(self.at_rank(b, len(self.shapes[0])))

    def sliced(self, b: Builder, port: Sliced) -> Open:
        """The values for a Loop that slices the tensor: `data`, a view of it, and the shape of the
        parts."""
        shapes, axis = self.bounded(), port.axis
        if port.keepdims:
            raise unsettled("it takes parts of a tensor of open rank that keep their axis")
        shape = without_axis(b, self.shape, axis)
        parts = joined(
            tuple(dim for place, dim in enumerate(whole) if place != axis % len(whole))
            for whole in shapes
            if -len(whole) <= axis < len(whole)
        )
        if not parts:
            raise unsettled(f"it is cut along axis {axis}, which none of its possible ranks has")
        data = self.view(b, len(shapes[-1]), axis >= 0)
        return Open(data, as_long_as(shape, parts), parts)

    def stacked(self, b: Builder) -> Open:
        """The tensor from its parts along a new first axis. Here `data` is [parts, elements] and
        `shape` is [parts, rank] with equal rows."""
        count = b.op("Shape", self.shape)
        rows = b.op("Reshape", self.shape, [-1])
        row = b.op("Slice", rows, b.constant([0]), count[1:2], [0])
        shape = b.op("Concat", count[:1], row, axis=0)
        shapes = None if self.shapes is None else tuple((ANY, *known) for known in self.shapes)
        data = b.op("Reshape", self.data, [-1])
        return Open(data, as_long_as(shape, shapes), shapes)

    def reshaped(self, b: Builder, target: Value, allowzero: bool) -> Open:
        """The tensor in the shape `target`, i64 of unknown length."""
        zero, one = b.constant([0]), b.constant([1])
        shape = target
        if not allowzero:
            longer = b.op("Concat", self.shape, shape, axis=0)
            copied = b.op("Slice", longer, zero, b.op("Shape", shape), zero)
            shape = b.where(shape.equal(0), copied, shape)
        if not is_not_negative(target):
            rest = shape < 0
            others = b.op("ReduceProd", b.where(rest, one, shape), zero, keepdims=True)
            # Of an empty tensor, the rest is 0.
            shape = b.where(rest, b.op("Size", self.data) / b.max(others, one), shape)
        length: Dim = target.dims[0] if target.rank == 1 else ANY
        if shape is not target:
            shape = typed(shape, (length,))
        return Open(self.data, shape, shapes_as_long_as(length))


def _known_element(value: Value) -> Element:
    if value.element is None:
        raise Refused("the element type of a tensor is not known")
    return value.element


def tensor(form: Form | None) -> TensorForm:
    """A form that is a tensor. Refused for any other form."""
    if isinstance(form, TensorForm):
        return form
    raise Refused("its input is no tensor")


def plain(form: Form | None) -> Value | None:
    """A tensor of known rank, or none. Refused for anything else."""
    if form is None or isinstance(form, Plain):
        return None if form is None else form.value
    raise Refused("its input is no tensor")


def is_one(value: Value, rank: int) -> bool:
    """Whether a tensor is known to have one element, and at most this rank."""
    shape = value.shape
    return is_static(shape) and size_of(shape) == 1 and len(shape) <= rank


def unview(
    b: Builder, value: Value, rank: Value, front: bool, shapes: Iterable[Dims]
) -> TensorForm:
    """The tensor of the view `value`, from its rank, i64 [1], and its possible shapes."""
    known = joined(shapes)
    shape = b.op("Shape", value)
    if len(known) == 1:
        (only,) = known
        if value.rank == len(only):
            return Plain(typed(value, only))
        part = shape[: len(only)] if front else shape[-len(only) :]
        part = sizes(b, part, only) if only else b.constant(np.zeros(0, np.int64))
        return Plain(typed(b.op("Reshape", value, part, allowzero=True), only))
    zero = b.constant([0])
    if front:
        sizes_of_rank = b.op("Slice", shape, zero, rank, zero)
    else:
        sizes_of_rank = b.op("Slice", shape, b.constant([value.rank]) - rank, [I64_MAX], zero)
    sizes_of_rank = as_long_as(sizes_of_rank, known)
    return Open(b.op("Reshape", value, [-1]), sizes_of_rank, known)
