"""How sequences and optionals are held in tensors.

A form is a tree whose leaves are tensor values. Two forms of one structure have leaves that
correspond, so an If, a Loop or a graph boundary carries a form by carrying its leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import (
    ANY,
    BOOL,
    I64,
    Dim,
    Element,
    Shape,
    TensorType,
    interval,
    is_static,
    join_shape,
    size_of,
)
from bridge.operators import Refused


class Fails(Refused):
    """Raised for an operator that fails whenever it runs, in ONNX too."""


@dataclass(frozen=True)
class Elements:
    """A sequence whose length is known: its elements, and what is known of each one's type."""

    items: tuple[Value | Open, ...]
    item: TensorType


@dataclass(frozen=True)
class Ragged:
    """A sequence whose length is known at run time alone: `data`, all elements flattened and
    joined, 1-D, and `shapes`, i64 [length, rank]. `rank` is None while nothing determines it.
    Where elements differ in rank (`mixed`), it is the largest, and the shapes of the others end
    in -1s."""

    data: Value
    shapes: Value
    element: Element
    rank: int | None
    mixed: bool = False


@dataclass(frozen=True)
class Uniform:
    """A sequence whose length is known at run time alone and whose elements all have one known
    shape: `data`, [length, *shape]."""

    data: Value
    element: Element
    shape: tuple[int, ...]


Sequence = Elements | Ragged | Uniform


@dataclass(frozen=True)
class Open:
    """A tensor whose rank is known at run time alone: `data`, its elements in their order, 1-D, and
    `shape`, i64 [rank]. `shapes` are the shapes that it may have, one for each rank, by rank; None
    where nothing bounds the rank."""

    data: Value
    shape: Value
    shapes: tuple[tuple[Dim, ...], ...] | None

    @property
    def element(self) -> Element:
        """The element type."""
        return element_of_item(self.data)


@dataclass(frozen=True)
class Maybe:
    """An optional: `present`, a boolean scalar, and the payload (a dummy where it is absent; None
    where nothing says what it would be)."""

    present: Value
    payload: Form | None


Form = Value | Open | Elements | Ragged | Uniform | Maybe

Forms = list[Form | None] | tuple[Form | None, ...]
"""Those of a node's inputs."""


def plain(form: Form | None) -> Value | None:
    """A tensor of known rank, or none. Refused for anything else."""
    if form is None or isinstance(form, Value):
        return form
    raise Refused("its input is no tensor")


def tensor(form: Form | None) -> Value | Open:
    """A tensor. Refused for anything else."""
    if isinstance(form, Value | Open):
        return form
    raise Refused("its input is no tensor")


def is_one(form: Form | None, rank: int) -> bool:
    """Whether a tensor is known to have one element, and at most this rank."""
    shape = form.shape if isinstance(form, Value) else None
    return is_static(shape) and size_of(shape) == 1 and len(shape) <= rank


def leaves(form: Form | None) -> Iterator[Value]:
    """The tensors of a form, in a fixed order."""
    match form:
        case Value():
            yield form
        case Open():
            yield form.data
            yield form.shape
        case Elements():
            for item in form.items:
                yield from leaves(item)
        case Ragged():
            yield form.data
            yield form.shapes
        case Uniform():
            yield form.data
        case Maybe():
            yield form.present
            yield from leaves(form.payload)


def rebuilt(form: Form, values: Iterator[Value]) -> Form:
    """The form with other leaves, in the order of `leaves`."""
    match form:
        case Open():
            return Open(next(values), next(values), form.shapes)
        case Elements():
            items = tuple(cast("Value | Open", rebuilt(item, values)) for item in form.items)
            return Elements(items, form.item)
        case Ragged():
            return Ragged(next(values), next(values), form.element, form.rank, form.mixed)
        case Uniform():
            return Uniform(next(values), form.element, form.shape)
        case Maybe():
            present = next(values)
            return Maybe(present, None if form.payload is None else rebuilt(form.payload, values))
    return next(values)


def same_structure(a: Form | None, b: Form | None) -> bool:
    """Whether the leaves of two forms correspond."""
    match a, b:
        case Value(), Value():
            return True
        case Open(), Open():
            return True
        case Elements(), Elements():
            return len(a.items) == len(b.items) and all(
                same_structure(x, y) and ranks_of_item(x) == ranks_of_item(y)
                for x, y in zip(a.items, b.items, strict=True)
            )
        case Ragged(), Ragged():
            return (a.rank, a.mixed) == (b.rank, b.mixed)
        case Uniform(), Uniform():
            return a.shape == b.shape
        case Maybe(), Maybe():
            return same_structure(a.payload, b.payload)
    return a is None and b is None


def common(a: Form | None, b: Form | None, name: str) -> Form | None:
    """A form of the structure that both can be brought into (its leaves are of no use)."""
    if a is None or b is None:
        return b if a is None else a
    match a, b:
        case Value() | Open(), Value() | Open():
            return either(a, b)
        case Maybe(), Maybe():
            return Maybe(a.present, common(a.payload, b.payload, name))
        case Maybe(), _:
            return Maybe(a.present, common(a.payload, b, name))
        case _, Maybe():
            return Maybe(b.present, common(a, b.payload, name))
        case Elements(), Elements() if same_structure(a, b):
            pairs = zip(a.items, b.items, strict=True)
            return Elements(tuple(either(x, y) for x, y in pairs), a.item)
        case Elements() | Ragged() | Uniform(), Elements() | Ragged() | Uniform():
            any_value = next(iter(leaves(a)), next(iter(leaves(b)), Value()))
            shape = only_shape(a, b)
            if shape is not None:
                return Uniform(any_value, element_of(a), shape)
            ranks = ranks_of(a) | ranks_of(b)
            mixed = len(ranks) > 1 or any(isinstance(x, Ragged) and x.mixed for x in (a, b))
            rank = max(ranks) if ranks else None
            return Ragged(any_value, any_value, element_of(a), rank, mixed)
    raise Refused(f'"{name}" is a sequence in one place and an optional or a tensor in another')


def element_of(form: Sequence) -> Element:
    """The element type of a sequence's tensors."""
    if not isinstance(form, Elements):
        return form.element
    return element_of_item(form.items[0] if form.items else form.item)


def element_of_item(item: Value | Open | TensorType) -> Element:
    """The element type of a tensor."""
    if item.element is None:
        raise Refused("the element type of a tensor is not known")
    return item.element


def only_shape(*forms: Sequence) -> tuple[int, ...] | None:
    """The one known shape that all elements of sequences have, None where there is none. Not one
    of size 0: in OpenVINO's Loops a state of no elements loses its number of rows."""
    shapes: set[Shape] = set()
    for form in forms:
        if isinstance(form, Uniform):
            shapes.add(form.shape)
        elif isinstance(form, Ragged):
            shapes.add(None)
        else:
            shapes |= {v.shape if isinstance(v, Value) else None for v in form.items}
    shape = shapes.pop() if len(shapes) == 1 else None
    if shape is None or 0 in shape or not is_static(shape):
        return None
    return shape


def ranks_of(form: Sequence) -> set[int]:
    """The ranks that a sequence's elements have, as far as anything determines them."""
    if isinstance(form, Uniform):
        return {len(form.shape)}
    if isinstance(form, Ragged):
        return set() if form.rank is None else {form.rank}
    if not form.items and form.item.rank is not None:
        return {form.item.rank}
    ranks: set[int] = set()
    for item in form.items:
        own = ranks_of_item(item)
        if not own:
            return set()
        ranks |= own
    return ranks


def ranks_of_item(item: Value | Open) -> set[int]:
    """The ranks that a tensor may have; none where nothing bounds them."""
    if isinstance(item, Open):
        return {len(shape) for shape in item.shapes or ()}
    return set() if item.rank is None else {item.rank}


def shapes_of(item: Value | Open) -> tuple[tuple[Dim, ...], ...] | None:
    """The shapes that a tensor may have, one for each rank, by rank; None where nothing bounds the
    rank."""
    if isinstance(item, Open):
        return item.shapes
    return None if item.shape is None else (item.shape,)


def joined(shapes: Iterable[tuple[Dim, ...]]) -> tuple[tuple[Dim, ...], ...]:
    """What is known of a shape that is one of these: a shape for each rank, by rank."""
    by_rank: dict[int, tuple[Dim, ...]] = {}
    for shape in shapes:
        known = join_shape(by_rank.get(len(shape), shape), shape)
        assert known is not None
        by_rank[len(shape)] = known
    return tuple(by_rank[rank] for rank in sorted(by_rank))


def either(a: Value | Open, b: Value | Open) -> Value | Open:
    """A form that can hold both tensors: of open rank where they differ in rank (its leaves are of
    no use)."""
    one, other = shapes_of(a), shapes_of(b)
    plain = isinstance(a, Value) and isinstance(b, Value)
    if plain and (one is None or other is None or len(one[0]) == len(other[0])):
        return a
    shapes = None if one is None or other is None else joined((*one, *other))
    leaf = next(leaves(a))
    return Open(leaf, leaf, shapes)


def to_open(b: Builder, item: Value | Open, like: Open | None = None) -> Open:
    """The tensor as a pair, of the shapes that `like` may have, where that is given."""
    if isinstance(item, Open):
        return item if like is None else replace(item, shapes=like.shapes)
    data = item if item.rank == 1 else b.op("Reshape", item, b.constant([-1]))
    shapes = shapes_of(item) if like is None else like.shapes
    return Open(data, b.op("Shape", item), shapes)


def to_uniform(b: Builder, form: Elements | Uniform, like: Uniform) -> Uniform:
    """The sequence as one tensor; its elements have the shape of those of `like`."""
    if isinstance(form, Uniform):
        return form
    if not form.items:
        none = b.constant(np.zeros((0, *like.shape), like.element.dtype))
        return Uniform(none, like.element, like.shape)
    lines = [b.op("Unsqueeze", item, b.constant([0])) for item in leaves(form)]
    return Uniform(b.op("Concat", *lines, axis=0), like.element, like.shape)


def to_ragged(b: Builder, form: Sequence, name: str, like: Ragged | None = None) -> Ragged:
    """The sequence as a ragged pair, with rows as long as those of `like`, where that is given."""
    wide = None if like is None else like.rank
    mixed = like is not None and like.mixed
    if isinstance(form, Uniform):
        form = _flattened(b, form)
    if isinstance(form, Ragged):
        shapes = _widened(b, form.shapes, form.rank, wide)
        rank = form.rank if wide is None else wide
        return Ragged(form.data, shapes, form.element, rank, form.mixed or mixed)
    element = element_of(form)
    ranks = ranks_of(form)
    mixed = mixed or len(ranks) > 1
    rank = max(ranks) if ranks and wide is None else wide
    if not form.items:
        data = b.constant(np.zeros(0, element.dtype))
        shapes = b.constant(np.zeros((0, rank or 0), np.int64))
        return Ragged(data, shapes, element, rank, mixed)
    if rank is None or not ranks:
        raise Refused(undetermined(name))
    flat = [elements(b, item) for item in form.items]
    if rank == 0:
        shapes = b.constant(np.zeros((len(flat), 0), np.int64))
    else:
        shapes = b.op("Concat", *(row(b, item, rank) for item in form.items), axis=0)
    return Ragged(b.op("Concat", *flat, axis=0), shapes, element, rank, mixed)


def _flattened(b: Builder, form: Uniform) -> Ragged:
    rank = len(form.shape)
    count = b.op("Slice", b.op("Shape", form.data), b.constant([0]), b.constant([1]))
    line = b.constant(np.array(form.shape, np.int64).reshape(1, rank))
    shapes = b.op("Expand", line, b.op("Concat", count, b.constant([rank]), axis=0))
    return Ragged(b.op("Reshape", form.data, b.constant([-1])), shapes, form.element, rank)


def elements(b: Builder, item: Value | Open) -> Value:
    """The elements of a tensor in their order, 1-D."""
    return item.data if isinstance(item, Open) else b.op("Reshape", item, b.constant([-1]))


def row(b: Builder, item: Value | Open, rank: int) -> Value:
    """The shape of an element as a row, i64 [1, rank]."""
    if isinstance(item, Open):
        filled = b.op("Concat", item.shape, b.constant([-1] * rank), axis=0)
        shape = b.op("Slice", filled, b.constant([0]), b.constant([rank]), b.constant([0]))
        return b.op("Reshape", shape, b.constant([1, rank]))
    missing = rank - (item.rank or 0)
    shape = b.op("Shape", item)
    if missing:
        shape = b.op("Concat", shape, b.constant([-1] * missing), axis=0)
    return b.op("Unsqueeze", shape, b.constant([0]))


def _widened(b: Builder, shapes: Value, rank: int | None, to: int | None) -> Value:
    """Rows of `to` entries."""
    if to is None or to == rank:
        return shapes
    if rank is None:
        # Nothing but an empty sequence has elements of which nothing determines the rank.
        return b.op("Reshape", shapes, b.constant([0, to]), allowzero=True)
    count = b.op("Slice", b.op("Shape", shapes), b.constant([0]), b.constant([1]))
    size = b.op("Concat", count, b.constant([to - rank]), axis=0)
    return b.op("Concat", shapes, b.op("Expand", b.constant(-1), size), axis=1)


def undetermined(name: str) -> str:
    """The reason for refusing a sequence whose element rank nothing determines."""
    return (
        f'nothing determines the rank of the elements of the sequence "{name}"; give the shape of '
        f'the elements of the sequence inputs, for example --input-shape "{name}=[?,3]"'
    )


def converted(b: Builder, form: Form | None, like: Form | None, name: str) -> Form | None:
    """The form in the structure of `like`."""
    if form is None or like is None:
        return None if like is None else empty(b, like)
    match like:
        case Ragged():
            assert isinstance(form, Sequence)
            return to_ragged(b, form, name, like)
        case Uniform():
            assert isinstance(form, Elements | Uniform)
            return to_uniform(b, form, like)
        case Maybe():
            if not isinstance(form, Maybe):
                form = Maybe(b.constant(True), form)
            return Maybe(form.present, converted(b, form.payload, like.payload, name))
        case Open():
            assert isinstance(form, Value | Open)
            return to_open(b, form, like)
        case Elements():
            assert isinstance(form, Elements)
            pairs = zip(form.items, like.items, strict=True)
            items = (converted(b, item, other, name) for item, other in pairs)
            return Elements(tuple(cast("Value | Open", item) for item in items), form.item)
    return form


def empty(b: Builder, like: Form) -> Form:
    """A dummy of the structure of `like`, for an optional that is absent."""
    match like:
        case Open():
            data = b.constant(np.zeros(1, like.element.dtype))
            rank = len(like.shapes[0]) if like.shapes else 0
            return Open(data, b.constant(np.ones(rank, np.int64)), like.shapes)
        case Elements():
            items = tuple(cast("Value | Open", empty(b, item)) for item in like.items)
            return Elements(items, like.item)
        case Ragged():
            data = b.constant(np.zeros(0, like.element.dtype))
            shapes = b.constant(np.zeros((0, like.rank or 0), np.int64))
            return Ragged(data, shapes, like.element, like.rank, like.mixed)
        case Uniform():
            return to_uniform(b, Elements((), TensorType(like.element)), like)
        case Maybe():
            payload = None if like.payload is None else empty(b, like.payload)
            return Maybe(b.constant(False), payload)
    return _zeros(b, like)


def _zeros(b: Builder, like: Value) -> Value:
    if like.element is None or like.shape is None:
        raise Refused(
            f'nothing determines the rank of "{like.name}", the value of an optional; give it '
            f'with --input-shape "{like.name}=[?,3]"'
        )
    shape = [dim if isinstance(dim, int) else 1 for dim in like.shape]
    zero = b.constant(np.zeros((), like.element.dtype))
    return b.op("Expand", zero, b.constant(shape)) if shape else zero


def leaf_types(form: Form) -> list[TensorType]:
    """The types by which the leaves of a form enter a body."""
    match form:
        case Open():
            ranks = sorted(ranks_of_item(form))
            rank = interval(ranks[0], ranks[-1]) if ranks else ANY
            return [TensorType(form.element, (ANY,)), TensorType(I64, (rank,))]
        case Elements():
            return [type for item in form.items for type in leaf_types(item)]
        case Ragged():
            rows = (ANY, ANY if form.rank is None else form.rank)
            return [TensorType(form.element, (ANY,)), TensorType(I64, rows)]
        case Uniform():
            return [TensorType(form.element, (ANY, *form.shape))]
        case Maybe():
            own = [TensorType(BOOL, ())]
            return own if form.payload is None else own + leaf_types(form.payload)
    return [value.tensor for value in leaves(form)]


def known_types(form: Form) -> list[TensorType]:
    """The types of the leaves, and all shapes of tensors of open rank: what a Loop's state must
    keep."""
    match form:
        case Open():
            shapes = (TensorType(form.element, shape) for shape in form.shapes or ())
            return [*leaf_types(form), *shapes]
        case Elements():
            return [type for item in form.items for type in known_types(item)]
        case Maybe() if form.payload is not None:
            return [*leaf_types(form), *known_types(form.payload)]
    return leaf_types(form)
