"""Rows in which every few levels of different axes meet, where they go together at all.

Most levels here exclude others, with which libraries for covering arrays leave pairs out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, product

Row = Mapping[str, str]
Pick = tuple[tuple[str, str], ...]
"""Levels of some axes, in the order of the axes."""

TRIES = 60
"""How many rows are tried for a pick. One of which none exists is left out."""
FEW = 8
"""How many rows are tried for a pair, as long as more pairs turn out to go together."""
DRAWN = 3000
"""How many rows are drawn to find which pairs of levels go together."""


def covering(
    axes: Mapping[str, Sequence[str]], exists: Callable[[Row], bool], strength: int
) -> Iterator[Row]:
    """Rows, greedily: each begins with a pick of levels that have not met, and takes those further
    levels that meet most others for the first time. The same axes give the same rows."""
    order = random.Random(0)
    apart = _apart(axes, exists, order)
    unmet = {
        pick: None for pick in _picks(axes, strength) if apart.isdisjoint(combinations(pick, 2))
    }
    while unmet:
        pick = next(iter(unmet))
        rows = _tried(axes, pick, unmet, apart, order, strength)
        row = next(filter(exists, rows), None)
        unmet.pop(pick)
        if row is not None:
            for met in combinations(row.items(), strength):
                unmet.pop(met, None)
            yield row


def _apart(
    axes: Mapping[str, Sequence[str]], exists: Callable[[Row], bool], order: random.Random
) -> set[Pick]:
    """Pairs of levels that do not go together: no row was found that has them."""
    apart = set(_picks(axes, 2))
    for _ in range(DRAWN):
        row = {axis: order.choice(levels) for axis, levels in axes.items()}
        if not apart.isdisjoint(combinations(row.items(), 2)) and exists(row):
            apart.difference_update(combinations(row.items(), 2))
    before = 0
    while len(apart) != before:
        before = len(apart)
        for pick in sorted(apart):
            tried = chain.from_iterable(
                islice(_tried(axes, pick, {}, avoided, order, 2), FEW)
                for avoided in (apart - {pick}, set())
            )
            row = next(filter(exists, tried), None)
            if row is not None:
                apart.difference_update(combinations(row.items(), 2))
    return apart


def _picks(axes: Mapping[str, Sequence[str]], strength: int) -> Iterator[Pick]:
    for names in combinations(axes, strength):
        for levels in product(*(axes[name] for name in names)):
            yield tuple(zip(names, levels, strict=True))


def _tried(
    axes: Mapping[str, Sequence[str]],
    pick: Pick,
    unmet: Mapping[Pick, None],
    apart: set[Pick],
    order: random.Random,
    strength: int,
) -> Iterator[Row]:
    """Rows with these levels, which may exist: half of them with many picks that are `unmet`, the
    rest at random. No two of their levels are known to keep `apart`."""
    places = {axis: place for place, axis in enumerate(axes)}

    def picks(levels: Mapping[str, str], axis: str, level: str, size: int) -> Iterator[Pick]:
        for others in combinations(levels.items(), size - 1):
            yield tuple(sorted((*others, (axis, level)), key=lambda item: places[item[0]]))

    for number in range(TRIES):
        levels = dict(pick)
        for axis in order.sample(list(axes), len(axes)):
            if axis in levels:
                continue
            fitting = [
                level for level in axes[axis] if apart.isdisjoint(picks(levels, axis, level, 2))
            ]
            if not fitting:
                break
            order.shuffle(fitting)
            if unmet and number < TRIES // 2:
                fitting.sort(
                    key=lambda level: -sum(p in unmet for p in picks(levels, axis, level, strength))
                )
            levels[axis] = fitting[0]
        if len(levels) == len(axes):
            yield {axis: levels[axis] for axis in axes}
