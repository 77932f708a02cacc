"""Seeks inputs that lead to a branch. The distance of each input from the branch guides the search.

The method is the alternating variable method of search-based testing (B. Korel, 1990; P. McMinn,
"Search-based software test data generation", 2004). The search changes one size or number at a
time, by steps of all magnitudes, as long as the distance becomes smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from bridge.check.inputs import Recipe, open_sizes
from bridge.check.probe import ITERATION
from bridge.neutral.graph import Value
from bridge.neutral.types import TensorType, high, low

LARGEST_SIZE = 4096  # the largest size of a dimension that the search tries
_LATEST = 8  # the latest iteration of a Loop that the search tries

Distances = Callable[[Recipe], tuple[float, ...]]
"""The distances of a recipe's inputs from each wanted condition. The tuple is empty if the
distances cannot be computed."""


@dataclass(frozen=True)
class Variable:
    """A size or a number that the search may change. `key` is the key of a dimension in
    `Recipe.sizes`, or the name of an input that the number fills. `lowest` and `highest` are
    limits, `step` is the least change, and `usual` is the value if a recipe has none."""

    key: str
    is_size: bool
    lowest: float = -math.inf
    highest: float = math.inf
    step: float = 1.0
    usual: float = 0.0

    def of(self, recipe: Recipe) -> float:
        """The size or number in a recipe."""
        found = (recipe.sizes if self.is_size else recipe.fills).get(self.key)
        return found if isinstance(found, int | float) else self.usual

    def put(self, recipe: Recipe, number: float) -> Recipe | None:
        """The recipe with another size or number, None if the number is beyond the limits."""
        if not self.lowest <= number <= self.highest:
            return None
        if self.is_size:
            return replace(recipe, sizes={**recipe.sizes, self.key: int(number)})
        return replace(recipe, fills={**recipe.fills, self.key: number})


def variables(asked: Mapping[Value, bool], base: Recipe) -> list[Variable]:
    """The sizes and numbers that may be changed in the inputs of a condition (see `Probe.asked`).
    Sizes and numbers that `base` fixes are left out."""
    sizes: dict[str, Variable] = {}
    fills: list[Variable] = []
    for value, valued in asked.items():
        if value.name.startswith(ITERATION):
            fills.append(Variable(value.name, False, 0, _LATEST))
            continue
        for key, dim in open_sizes(value).items():
            given = base.sizes.get(key, dim)
            if not isinstance(given, int):
                most = high(given)
                most = LARGEST_SIZE if most is None else min(most, LARGEST_SIZE)
                # No empty tensor: onnxruntime crashes in some kernels.
                least = max(low(given), 1)
                sizes[key] = Variable(key, True, least, most, usual=least)
        kind = value.element.kind if isinstance(value.type, TensorType) and value.element else ""
        if valued and value.name not in base.fills and kind in ("bool", "int", "uint", "float"):
            step = 2.0**-6 if kind == "float" else 1.0
            lowest, highest = (0, 1) if kind == "bool" else (-math.inf, math.inf)
            fills.append(Variable(value.name, False, lowest, highest, step))
    return [*fills, *sizes.values()]


def solve(
    starts: Sequence[Recipe],
    wanted: Sequence[Sequence[Variable]],
    hints: Sequence[float],
    distances: Distances,
) -> Recipe | None:
    """A recipe whose distances are all 0, None if the search finds no such recipe.

    `wanted` has, for each distance, the variables that the distance depends on. `hints` are numbers
    that the model compares with.
    """
    search = _DistanceSearch(wanted, hints, distances)
    for start in starts:
        search.try_(start)
    if math.isinf(search.least):
        search.scan(starts[0])
    search.descend()
    idle = 0
    for start in search.others(starts[0]):
        if not search.least or not search.left or idle == _IDLE:
            break
        further = _DistanceSearch(wanted, hints, distances, search.left)
        further.try_(start)
        further.descend()
        search.left = further.left
        idle += 1
        if further.least < search.least:
            search.best, search.least, idle = further.best, further.least, 0
    return search.best if search.least == 0 else None


_TRIES = 400  # recipes for one branch
_IDLE = 3  # other starts in a row without a nearer recipe, then the search ends
_FARTHEST = 22  # the largest change is two to this power
_FARTHER = 4  # steps in a row that lead farther and farther away, then the direction is left
_PAIRED = 4  # variables, at most, that are changed two at once

Direction = Sequence[tuple[Variable, int]]
"""Variables that are changed at once, each upwards or downwards."""


class _DistanceSearch:
    def __init__(
        self,
        wanted: Sequence[Sequence[Variable]],
        hints: Sequence[float],
        distances: Distances,
        left: int = _TRIES,
    ) -> None:
        self.wanted = wanted
        self.variables = list(dict.fromkeys(v for own in wanted for v in own))
        self.hints = hints
        self.distances = distances
        self.left = left
        self.best: Recipe | None = None
        self.least = math.inf
        self.total = math.inf  # of the recipe that was tried last
        self.moves = False  # whether the distance has changed
        self.far: tuple[float, ...] = ()

    def try_(self, recipe: Recipe | None) -> bool:
        """Computes a recipe's distances, unless the search is over. The answer is whether the
        recipe is nearer than all before it."""
        self.total = math.inf
        if recipe is None or not self.least or not self.left:
            return False
        self.left -= 1
        found = self.distances(recipe)
        if found:
            self.total = sum(found)
        self.moves |= self.total != self.least
        if self.total >= self.least:
            return False
        self.best, self.least, self.far = recipe, self.total, found
        return True

    def descend(self) -> None:
        """Changes one variable after the other, as long as the recipe comes nearer. The variables
        of the outermost condition that is not met come first. If no single variable helps, two
        are changed at once, of those that change the distance."""
        nearer = True
        while nearer and 0 < self.least < math.inf and self.left:
            unmet = [own for own, far in zip(self.wanted, self.far, strict=True) if far]
            some = dict.fromkeys(variable for own in unmet for variable in own)
            nearer = False
            moving: list[Variable] = []
            for variable in some:
                nearer = self._hinted(variable) or nearer
                self.moves = False
                nearer = self._change([(variable, 1)]) or nearer
                moving += [variable] if self.moves else []
            if not nearer and len(moving) <= _PAIRED:
                nearer = any(
                    self._change([(one, 1), (other, sign)])
                    for one, other in combinations(moving, 2)
                    for sign in (1, -1)
                )

    def _hinted(self, variable: Variable) -> bool:
        assert self.best is not None
        return any([self.try_(variable.put(self.best, number)) for number in self.hints])

    def _change(self, direction: Direction) -> bool:
        """Changes the variables in a direction, or against it, as long as the recipe comes nearer.
        The answer is whether it came nearer."""
        before = self.least
        for sign in (1, -1):
            power, farther, last = 0, 0, self.least
            while power < _FARTHEST and self.least > 0 and self.left and farther < _FARTHER:
                # A step that is too small may have no effect. A step that helps is doubled.
                step = sign * 2.0**power
                power += 1
                while self._move(direction, step):
                    step *= 2
                    power = farther = 0
                    last = self.least
                farther = farther + 1 if last < self.total < math.inf else 0
                last = self.total
        return self.least < before

    def _move(self, direction: Direction, step: float) -> bool:
        recipe = self.best
        for variable, sign in direction:
            if recipe is not None:
                number = variable.of(recipe) + sign * step * variable.step
                recipe = variable.put(recipe, number)
        return self.try_(recipe)

    def scan(self, start: Recipe) -> None:
        """Tries inputs until distances can be computed. The inputs have all their open sizes
        alike, or one size changed."""
        sizes = [variable for variable in self.variables if variable.is_size]
        powers = [1 << k for k in range(13)] if sizes else []
        alike = [_sized(start, sizes, number) for number in powers]
        single = [
            one.put(recipe, number)
            for recipe in (start, *alike[:2])
            for one in sizes
            for number in powers
        ]
        for recipe in (*single, *alike):
            if math.isinf(self.least):
                self.try_(recipe)

    def others(self, start: Recipe) -> Iterator[Recipe]:
        """Other recipes to start from: one with all sizes 1, then random recipes."""
        sizes = [variable for variable in self.variables if variable.is_size]
        if sizes:
            yield _sized(start, sizes, 1)
        rng = np.random.default_rng(0)
        while self.variables:
            recipe = start
            for variable in self.variables:
                number = self.hints[int(rng.integers(len(self.hints)))]
                if rng.integers(2):
                    number += int(rng.integers(-16, 17))
                recipe = variable.put(recipe, number) or recipe
            yield recipe


def _sized(recipe: Recipe, sizes: Sequence[Variable], number: int) -> Recipe:
    """The recipe with each of these sizes as near to `number` as the size's limits allow."""
    chosen = {size.key: int(min(max(number, size.lowest), size.highest)) for size in sizes}
    return replace(recipe, sizes={**recipe.sizes, **chosen})
