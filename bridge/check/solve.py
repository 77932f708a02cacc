"""Seeks inputs that lead to a branch, guided by how far each is from it.

The method is the alternating variable method of search-based testing (B. Korel, 1990; P. McMinn,
"Search-based software test data generation", 2004): one size or number is changed at a time, by
steps of all magnitudes, as long as that leads nearer.
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

LARGEST_SIZE = 4096  # of a dimension that the search tries
_LATEST = 8  # iteration of a Loop that the search tries

Distances = Callable[[Recipe], tuple[float, ...]]
"""How far the inputs of a recipe are from each thing that is wanted of them; empty where that
cannot be computed."""


@dataclass(frozen=True)
class Variable:
    """What the search may change: a dimension, by its key in `Recipe.sizes`, or the number that
    fills an input; its limits, its least change, and what it is where a recipe does not say."""

    key: str
    is_size: bool
    lowest: float = -math.inf
    highest: float = math.inf
    step: float = 1.0
    usual: float = 0.0

    def of(self, recipe: Recipe) -> float:
        """The size or number that a recipe has."""
        found = (recipe.sizes if self.is_size else recipe.fills).get(self.key)
        return found if isinstance(found, int | float) else self.usual

    def put(self, recipe: Recipe, number: float) -> Recipe | None:
        """The recipe with another size or number, None for one beyond the limits."""
        if not self.lowest <= number <= self.highest:
            return None
        if self.is_size:
            return replace(recipe, sizes={**recipe.sizes, self.key: int(number)})
        return replace(recipe, fills={**recipe.fills, self.key: number})


def variables(asked: Mapping[Value, bool], base: Recipe) -> list[Variable]:
    """What may be changed of the inputs that a condition asks for (see `Probe.asked`); what `base`
    fixes stays."""
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
                # No empty tensor: onnxruntime ends the process in some kernels.
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
    """A recipe of which all distances are 0, None where none was found.

    `wanted` has for each distance the variables that it depends on; `hints` are numbers that the
    model compares with.
    """
    search = _Search(wanted, hints, distances)
    for start in starts:
        search.try_(start)
    if math.isinf(search.least):
        search.scan(starts[0])
    search.descend()
    for start in search.others(starts[0]):
        if not search.least or not search.left:
            break
        further = _Search(wanted, hints, distances, search.left)
        further.try_(start)
        further.descend()
        search.left = further.left
        if further.least < search.least:
            search.best, search.least = further.best, further.least
    return search.best if search.least == 0 else None


_TRIES = 400  # recipes for one branch
_FARTHEST = 22  # power of two of the largest change
_PAIRED = 4  # variables of which each two are changed at once

Direction = Sequence[tuple[Variable, int]]
"""Variables that are changed at once, each upwards or downwards."""


class _Search:
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
        self.far: tuple[float, ...] = ()

    def try_(self, recipe: Recipe | None) -> bool:
        """Looks how near a recipe comes, unless the best one is there already; whether that is
        nearer than any before."""
        if recipe is None or not self.least or not self.left:
            return False
        self.left -= 1
        found = self.distances(recipe)
        total = sum(found) if found else math.inf
        if total >= self.least:
            return False
        self.best, self.least, self.far = recipe, total, found
        return True

    def descend(self) -> None:
        """Changes one variable after the other, those of the outermost condition that is not met
        yet first, as long as that leads nearer; two at once where none does alone."""
        nearer = True
        while nearer and 0 < self.least < math.inf and self.left:
            unmet = [own for own, far in zip(self.wanted, self.far, strict=True) if far]
            some = list(dict.fromkeys(variable for own in unmet for variable in own))
            nearer = False
            for variable in some:
                nearer = self._hinted(variable) or nearer
                nearer = self._change([(variable, 1)]) or nearer
            if not nearer and len(some) <= _PAIRED:
                nearer = any(
                    self._change([(one, 1), (other, sign)])
                    for one, other in combinations(some, 2)
                    for sign in (1, -1)
                )

    def _hinted(self, variable: Variable) -> bool:
        assert self.best is not None
        return any([self.try_(variable.put(self.best, number)) for number in self.hints])

    def _change(self, direction: Direction) -> bool:
        """Goes in a direction, or against it, as long as that leads nearer; whether it did."""
        before = self.least
        power = 0
        while power < _FARTHEST and self.least > 0 and self.left:
            # Steps that are too small may change nothing; one that does is doubled.
            step = 2.0**power
            power += 1
            for signed in (step, -step):
                while self._move(direction, signed):
                    signed *= 2
                    power = 0
        return self.least < before

    def _move(self, direction: Direction, step: float) -> bool:
        recipe = self.best
        for variable, sign in direction:
            if recipe is not None:
                number = variable.of(recipe) + sign * step * variable.step
                recipe = variable.put(recipe, number)
        return self.try_(recipe)

    def scan(self, start: Recipe) -> None:
        """Tries inputs with all their open sizes alike, and such with one other size, until one
        can be computed."""
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
        """Where else to begin: with sizes of 1, and by chance."""
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
    """The recipe with all these sizes as near to a number as their limits allow."""
    chosen = {size.key: int(min(max(number, size.lowest), size.highest)) for size in sizes}
    return replace(recipe, sizes={**recipe.sizes, **chosen})
