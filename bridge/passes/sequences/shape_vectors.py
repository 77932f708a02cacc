"""Vectors that hold the shape of a tensor of open rank, and the facts about them."""

from collections.abc import Iterable

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import (
    ANY,
    Dim,
    TensorType,
    high,
    interval,
    join_shape,
    low,
    meet,
)
from bridge.operators import Refused

Dims = tuple[Dim, ...]

PossibleShapes = tuple[Dims, ...] | None
"""The shapes that a tensor may have, one for each rank, by rank; None without a bound."""

MOST_RANKS = 8
"""Ranks that a value may have and be said to have a bound."""


def unsettled(why: str) -> Refused:
    """The refusal if the shapes of a tensor of open rank must be known better."""
    return Refused(
        f"{why}; to leave it one rank, give the inputs' shapes (`input_shapes`), or the rank of "
        "the output that it goes to (`output_ranks`)"
    )


def joined(shapes: Iterable[Dims]) -> tuple[Dims, ...]:
    """The possible shapes joined: one shape for each rank, ordered by rank."""
    by_rank: dict[int, Dims] = {}
    for shape in shapes:
        known = join_shape(by_rank.get(len(shape), shape), shape)
        assert known is not None
        by_rank[len(shape)] = known
    return tuple(by_rank[rank] for rank in sorted(by_rank))


def shapes_as_long_as(length: Dim) -> PossibleShapes:
    """The shapes that a vector of this length may hold; None if there are too many."""
    least, most = low(length), high(length)
    if most is None or most - least >= MOST_RANKS:
        return None
    return tuple((ANY,) * rank for rank in range(least, most + 1))


def typed(value: Value, shape: Dims) -> Value:
    """The value, whose shape is known to be this."""
    value.type = value.declared = meet(value.type, TensorType(value.element, shape))
    return value


def as_long_as(shape: Value, shapes: PossibleShapes) -> Value:
    """A shape vector that holds one of these shapes."""
    if not shapes:
        return shape
    return typed(shape, (interval(len(shapes[0]), len(shapes[-1])),))


def sizes(b: Builder, shape: Value, known: Dims) -> Value:
    """A shape vector whose length and `known` sizes the target's inference can read."""
    rank = len(known)
    if all(isinstance(dim, int) for dim in known):
        return b.constant(np.array(known, np.int64))
    vector = b.op("Reshape", shape, [rank])
    if not any(isinstance(dim, int) for dim in known):
        return vector
    parts: list[Value] = []
    start = 0
    while start < rank:
        end, fixed = start + 1, isinstance(known[start], int)
        while end < rank and isinstance(known[end], int) == fixed:
            end += 1
        parts.append(b.constant(list(known[start:end])) if fixed else vector[start:end])
        start = end
    return b.op("Concat", *parts, axis=0)


def padded(shape: Dims, rank: int, front: bool) -> Dims:
    """A shape with 1s behind it (`front`) or before it, up to a rank."""
    ones: Dims = (1,) * (rank - len(shape))
    return (*shape, *ones) if front else (*ones, *shape)


def filled_up(b: Builder, shape: Value, rank: int, front: bool) -> Value:
    """The first `rank` entries of a shape with 1s behind it, or the last with 1s before it."""
    ones = b.constant([1] * rank)
    if front:
        return b.op("Concat", shape, ones, axis=0)[:rank]
    return b.op("Concat", ones, shape, axis=0)[-rank:]


def without_axis(b: Builder, shape: Value, axis: int) -> Value:
    """A shape vector without one of its entries."""
    ends = [shape[:axis]] if axis else []
    if axis != -1:
        ends.append(shape[axis + 1 :])
    return b.concat(0, *ends)


def with_axis(b: Builder, shape: Value, axis: int) -> Value:
    """A shape vector with one more entry, 1, which is then at `axis`."""
    one = b.constant([1])
    if axis == 0:
        return b.op("Concat", one, shape, axis=0)
    if axis == -1:
        return b.op("Concat", shape, one, axis=0)
    place = axis if axis > 0 else axis + 1
    ends = shape[:place], shape[place:]
    return b.op("Concat", ends[0], one, ends[1], axis=0)
