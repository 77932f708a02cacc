"""Rows that cover the combinations of a few levels of different axes, if these go together.

Most levels here exclude others. With such exclusions, libraries for covering arrays miss pairs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations, islice, product

Row = Mapping[str, str]
Level = tuple[str, str]
"""An axis and a level of it. A set of levels has one bit for each: `Levels.bits`."""

TRIES = 60
"""The number of rows tried for a pick. A pick without a row is left out."""
FEW = 8
"""The number of rows tried for a pair, as long as more pairs turn out to go together."""
DRAWN = 3000
"""The number of rows drawn to find the pairs of levels that go together."""


def covering(
    axes: Mapping[str, Sequence[str]], exists: Callable[[Row], bool], strength: int
) -> Iterator[Row]:
    """Rows, by a greedy search. Each begins with a pick of levels that have not met. It then adds
    the levels that meet most others for the first time. The same axes give the same rows."""
    levels = Levels(axes, exists)
    levels.part()
    unmet = {
        levels.set(pick): pick
        for pick in _picks(axes, strength)
        if not any(levels.are_apart(pair) for pair in combinations(pick, 2))
    }
    while unmet:
        key, pick = next(iter(unmet.items()))
        row = next(filter(exists, levels.rows(pick, unmet, strength)), None)
        unmet.pop(key)
        if row is not None:
            for met in combinations(row.items(), strength):
                unmet.pop(levels.set(met), None)
            yield row


def _picks(axes: Mapping[str, Sequence[str]], strength: int) -> Iterator[tuple[Level, ...]]:
    for names in combinations(axes, strength):
        for levels in product(*(axes[name] for name in names)):
            yield tuple(zip(names, levels, strict=True))


class Levels:
    """The levels of all axes, and the pairs of them that exclude each other."""

    def __init__(self, axes: Mapping[str, Sequence[str]], exists: Callable[[Row], bool]) -> None:
        self.axes = axes
        self.exists = exists
        self.order = random.Random(0)
        every = [(axis, level) for axis, levels in axes.items() for level in levels]
        self.bits = {level: 1 << place for place, level in enumerate(every)}
        self.apart = dict.fromkeys(every, 0)
        """For each level the set of levels that it excludes."""

    def set(self, levels: Collection[Level]) -> int:
        """A set of levels."""
        return sum(self.bits[level] for level in levels)

    def are_apart(self, pair: Sequence[Level]) -> bool:
        """Whether two levels exclude each other."""
        one, other = pair
        return bool(self.apart[one] & self.bits[other])

    def part(self) -> None:
        """Finds the pairs that exclude each other: no row was found for them."""
        apart = {(one, other) for one, other in _picks(self.axes, 2)}
        for _ in range(DRAWN):
            row = {axis: self.order.choice(levels) for axis, levels in self.axes.items()}
            pairs = [*combinations(row.items(), 2)]
            if not apart.isdisjoint(pairs) and self.exists(row):
                apart.difference_update(pairs)
        for one, other in apart:
            self._note(one, other, True)
        before = 0
        while len(apart) != before:
            before = len(apart)
            for pick in sorted(apart):
                row = next(filter(self.exists, self._few(pick)), None)
                if row is not None:
                    apart.difference_update(combinations(row.items(), 2))
                    for one, other in combinations(row.items(), 2):
                        self._note(one, other, False)

    def _few(self, pick: tuple[Level, Level]) -> Iterator[Row]:
        """A few rows of a pair that may go together after all; first rows without any other
        excluded pair."""
        one, other = pick
        avoided = {**self.apart}
        avoided[one] &= ~self.bits[other]
        avoided[other] &= ~self.bits[one]
        for apart in (avoided, dict.fromkeys(avoided, 0)):
            yield from islice(self.rows(pick, {}, 2, apart), FEW)

    def _note(self, one: Level, other: Level, apart: bool) -> None:
        for a, b in ((one, other), (other, one)):
            self.apart[a] = self.apart[a] | self.bits[b] if apart else self.apart[a] & ~self.bits[b]

    def rows(
        self,
        pick: tuple[Level, ...],
        unmet: Collection[int],
        strength: int,
        apart: Mapping[Level, int] | None = None,
    ) -> Iterator[Row]:
        """Rows with these levels that may exist. Half of them have many picks that are `unmet`; the
        rest is random. No two of their levels exclude each other by `apart`."""
        apart, bits = self.apart if apart is None else apart, self.bits
        for number in range(TRIES):
            row = dict(pick)
            taken = [bits[level] for level in pick]
            for axis in self.order.sample(list(self.axes), len(self.axes)):
                if axis in row:
                    continue
                all_taken = sum(taken)
                fitting = [v for v in self.axes[axis] if not apart[axis, v] & all_taken]
                if not fitting:
                    break
                self.order.shuffle(fitting)
                if unmet and number < TRIES // 2:
                    others = [sum(some) for some in combinations(taken, strength - 1)]
                    new = {v: sum(bits[axis, v] + o in unmet for o in others) for v in fitting}
                    fitting.sort(key=new.__getitem__, reverse=True)
                row[axis] = fitting[0]
                taken.append(bits[axis, fitting[0]])
            if len(row) == len(self.axes):
                yield {axis: row[axis] for axis in self.axes}
