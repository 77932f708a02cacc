"""Sequences of known length, as their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import Element, Shape, TensorType
from bridge.operators import Refused
from bridge.passes.sequences.form import Fails, Form, Sequence, only_shape, undetermined
from bridge.passes.sequences.open_operators import lower_open
from bridge.passes.sequences.ragged import Ragged, empty
from bridge.passes.sequences.tensors import Plain, TensorForm, tensor
from bridge.passes.sequences.uniform import Uniform


@dataclass(frozen=True)
class Elements(Sequence):
    """A sequence of known length: its elements, and the common type of the elements, as known."""

    items: tuple[TensorForm, ...]
    item: TensorType

    @property
    def is_plain(self) -> bool:
        """Whether it has elements, all of known rank."""
        return bool(self.items) and all(isinstance(item, Plain) for item in self.items)

    @property
    def item_element(self) -> Element:
        if self.items:
            return self.items[0].element
        if self.item.element is None:
            raise Refused("the element type of a tensor is not known")
        return self.item.element

    @property
    def item_ranks(self) -> set[int]:
        if not self.items and self.item.rank is not None:
            return {self.item.rank}
        ranks = [item.ranks for item in self.items]
        return set().union(*ranks) if all(ranks) else set()

    def item_shapes(self) -> set[Shape]:
        return {item.value.shape if isinstance(item, Plain) else None for item in self.items}

    def leaves(self) -> tuple[Value, ...]:
        return tuple(leaf for item in self.items for leaf in item.leaves())

    def with_leaves(self, values: Iterator[Value]) -> Elements:
        return Elements(tuple(item.with_leaves(values) for item in self.items), self.item)

    def leaf_names(self) -> tuple[str, ...]:
        return tuple(
            str(index) if isinstance(item, Plain) else f"{index}.{name}"
            for index, item in enumerate(self.items)
            for name in item.leaf_names()
        )

    def leaf_types(self) -> list[TensorType]:
        return [type for item in self.items for type in item.leaf_types()]

    def structure(self, exact: bool = False) -> object:
        items = ((item.structure(exact), frozenset(item.ranks)) for item in self.items)
        return Elements, tuple(items)

    def hold(self, b: Builder, form: Form, name: str) -> Form:
        assert isinstance(form, Elements)
        pairs = zip(form.items, self.items, strict=True)
        return replace(
            form, items=tuple(cast("TensorForm", like.hold(b, item, name)) for item, like in pairs)
        )

    def dummy(self, b: Builder) -> Elements:
        return Elements(tuple(cast("TensorForm", item.dummy(b)) for item in self.items), self.item)

    def to_ragged(self, b: Builder, name: str, like: Ragged | None = None) -> Ragged:
        element, ranks = self.item_element, self.item_ranks
        mixed = len(ranks) > 1 or (like is not None and like.mixed)
        rank = None if like is None else like.rank
        if rank is None and ranks:
            rank = max(ranks)
        if not self.items:
            return empty(b, element, rank, mixed)
        if rank is None or not ranks:
            raise undetermined(name)
        flat = [item.elements(b) for item in self.items]
        if rank == 0:
            shapes = b.constant(np.zeros((len(flat), 0), np.int64))
        else:
            shapes = b.op("Concat", *(item.row(b, rank) for item in self.items), axis=0)
        return Ragged(b.op("Concat", *flat, axis=0), shapes, element, rank, mixed)

    def movable(self, b: Builder, name: str) -> Ragged | Uniform:
        """The sequence in a form that can be indexed at run time."""
        shape = only_shape(self)
        if shape is None:
            return self.to_ragged(b, name)
        uniform = Uniform(self.leaves()[0], self.item_element, shape)
        return cast("Uniform", uniform.hold(b, self, name))

    def length(self, b: Builder) -> Value:
        return b.constant(len(self.items))

    def _place(self, index: Value | None, bound: int) -> int | None:
        """A position below `bound`, if it is known; without an index the last."""
        known = (bound - 1,) if index is None else known_of(index).ints
        if known is None:
            return None
        place = known[0] + len(self.items) if known[0] < 0 else known[0]
        if not 0 <= place < bound:
            count = len(self.items)
            raise Fails(f"position {known[0]} is outside the sequence of {count} elements")
        return place

    def at(self, b: Builder, index: Value, name: str) -> TensorForm:
        place = self._place(index, len(self.items))
        return self.movable(b, name).at(b, index, name) if place is None else self.items[place]

    def insert(self, b: Builder, value: TensorForm, index: Value | None, name: str) -> Sequence:
        place = self._place(index, len(self.items) + 1)
        if place is None:
            return self.movable(b, name).insert(b, value, index, name)
        return Elements((*self.items[:place], value, *self.items[place:]), self.item)

    def erase(self, b: Builder, index: Value | None, name: str) -> Sequence:
        place = self._place(index, len(self.items))
        if place is None:
            return self.movable(b, name).erase(b, index, name)
        return Elements((*self.items[:place], *self.items[place + 1 :]), self.item)

    def concat(self, b: Builder, axis: int, name: str) -> TensorForm:
        if not self.items:
            raise Fails("an empty sequence has no elements to concatenate")
        return _applied(b, "Concat", self.items, axis=axis)

    def stack(self, b: Builder, axis: int, name: str) -> TensorForm:
        items = (_applied(b, "Unsqueeze", (item, Plain(b.constant([axis])))) for item in self.items)
        return Elements(tuple(items), self.item).concat(b, axis, name)


@dataclass(frozen=True)
class Captured(Elements):
    """Elements that a Loop captures. `outside` gives them in movable form, made once outside of the
    Loop rather than in each iteration."""

    outside: Callable[[], Ragged | Uniform]

    def movable(self, b: Builder, name: str) -> Ragged | Uniform:
        return self.outside()


def _applied(b: Builder, op: str, inputs: tuple[TensorForm, ...], **attributes: Any) -> TensorForm:
    """Applies an operator to tensors, some perhaps of open rank."""
    if all(isinstance(form, Plain) for form in inputs):
        return Plain(b.op(op, *(form.leaves()[0] for form in inputs), **attributes))
    return tensor(lower_open(b, Node(op, [], [Value()], attributes), inputs)[0])
