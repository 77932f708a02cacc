"""Seeks a recipe that comes near to a goal, by the distance of each recipe from it.

The method is the alternating variable method of search-based testing (B. Korel, 1990; P. McMinn,
"Search-based software test data generation", 2004). The search changes one size or number at a
time, by steps of all magnitudes, as long as the distance becomes smaller. In a `short` search it
goes where two distances, on a line, would be 0, since few distances are far from a line.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

from bridge.check.inputs.recipe import Recipe

_TRIES = 400  # recipes for one goal
_FARTHEST = 22  # the largest change is two to this power
_FARTHER = 4  # steps in a row that lead farther and farther away, then the direction is left
_CROSSINGS = 5  # of a line with 0, for one variable
_PAIRED = 4  # variables, at most, that are changed two at once


@dataclass(frozen=True)
class Variable:
    """A size or a number that the search may change. `key` is its key `among` the sizes, fills,
    scales or spots of a recipe. `lowest` and `highest` are limits, `step` is the least change, and
    `usual` is the value if a recipe has none. `hints` are tried first."""

    key: Any
    among: Literal["sizes", "fills", "scales", "spots"]
    lowest: float = -math.inf
    highest: float = math.inf
    step: float = 1.0
    usual: float = 0.0
    hints: tuple[float, ...] = ()

    @property
    def is_size(self) -> bool:
        """Whether it is a size."""
        return self.among == "sizes"

    def of(self, recipe: Recipe) -> float:
        """The size or number in a recipe."""
        found = getattr(recipe, self.among).get(self.key)
        return found if isinstance(found, int | float) else self.usual

    def near(self, number: float) -> float:
        """The number as the variable can have it."""
        return round(number / self.step) * self.step

    def put(self, recipe: Recipe, number: float) -> Recipe | None:
        """The recipe with another size or number, None if the number is beyond the limits."""
        if not self.lowest <= number <= self.highest:
            return None
        new = {**getattr(recipe, self.among), self.key: int(number) if self.is_size else number}
        return replace(recipe, **{self.among: new})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Goal:
    """What is sought. `distances` has a recipe's distances from each condition, nothing if they
    cannot be computed. `wanted` has the variables that each of them depends on. A `short` search
    tries few recipes."""

    distances: Callable[[Recipe], tuple[float, ...]]
    wanted: Sequence[Sequence[Variable]]
    tries: int = _TRIES
    short: bool = False


def solve(goal: Goal, starts: Sequence[Recipe]) -> tuple[Recipe, float]:
    """The recipe that comes nearest to a goal, and its distance: 0 if the goal is met."""
    search = _Descent(goal, starts[0])
    for start in starts:
        search.attempt(start)
    if math.isinf(search.least):
        search.scan(starts[0])
    search.descend()
    if search.least and search.sizes and not goal.short:
        again = _Descent(goal, sized(starts[0], search.sizes, 1))
        again.attempt(again.best)
        again.descend()
        search = min(search, again, key=lambda one: one.least)
    return search.best, search.least


class _Descent:
    def __init__(self, goal: Goal, start: Recipe) -> None:
        self.goal = goal
        self.sizes = [v for v in dict.fromkeys(v for w in goal.wanted for v in w) if v.is_size]
        self.left = goal.tries
        self.best = start
        self.least = math.inf
        self.total = math.inf  # of the recipe that was tried last
        self.moves = False  # whether the distance has changed
        self.far: tuple[float, ...] = ()

    def attempt(self, recipe: Recipe | None) -> bool:
        """Computes a recipe's distances, unless the search is over. The answer is whether the
        recipe is nearer than all before it."""
        self.total = math.inf
        if recipe is None or not self.least or not self.left:
            return False
        self.left -= 1
        found = self.goal.distances(recipe)
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
            unmet = [own for own, far in zip(self.goal.wanted, self.far, strict=True) if far]
            nearer = False
            moving: list[Variable] = []
            for variable in dict.fromkeys(variable for own in unmet for variable in own):
                hinted = [variable.put(self.best, number) for number in variable.hints]
                nearer = any([self.attempt(recipe) for recipe in hinted]) or nearer
                self.moves = False
                change = self._cross if self.goal.short else self._change
                nearer = change([(variable, 1)]) or nearer
                moving += [variable] if self.moves else []
            if not nearer and len(moving) <= _PAIRED and not self.goal.short:
                nearer = any(
                    self._change([(one, 1), (other, sign)])
                    for one, other in combinations(moving, 2)
                    for sign in (1, -1)
                )

    def _change(self, direction: Sequence[tuple[Variable, int]]) -> bool:
        """Changes the variables in a direction, upwards or downwards, or against it, as long as the
        recipe comes nearer. The answer is whether it came nearer."""
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

    def _cross(self, direction: Sequence[tuple[Variable, int]]) -> bool:
        """Changes a variable to where the distance is 0, if two distances are on a line. The answer
        is whether the recipe came nearer."""
        before, start = self.least, self.best
        for variable, _ in direction[:1]:
            here, far = variable.of(start), self.least
            for sign in (1, -1):
                other = variable.near(here + sign * max(abs(here) / 8, variable.step))
                self.attempt(variable.put(start, other))
                its = self.total
                if math.isfinite(its) and its != far:
                    break
            for _ in range(_CROSSINGS):
                if not self.least or its == far or not math.isfinite(its):
                    break
                points = (
                    (other * far - here * its) / (far - its),
                    ((other * far + here * its) / (far + its)),
                )
                for point in map(variable.near, filter(math.isfinite, points)):
                    if point in (here, other):
                        continue
                    self.attempt(variable.put(self.best, point))
                    if self.total < far >= its:
                        here, far = point, self.total
                    elif self.total < its:
                        other, its = point, self.total
        return self.least < before

    def _move(self, direction: Sequence[tuple[Variable, int]], step: float) -> bool:
        recipe: Recipe | None = self.best
        for variable, sign in direction:
            if recipe is not None:
                number = variable.of(recipe) + sign * step * variable.step
                recipe = variable.put(recipe, number)
        return self.attempt(recipe)

    def scan(self, start: Recipe) -> None:
        """Tries inputs until distances can be computed. The inputs have all their open sizes
        alike, or one size changed."""
        powers = [1 << k for k in range(13)] if self.sizes else []
        alike = [sized(start, self.sizes, number) for number in powers]
        single = [
            one.put(recipe, number)
            for recipe in (start, *alike[:2])
            for one in self.sizes
            for number in powers
        ]
        for recipe in (*single, *alike):
            if math.isinf(self.least):
                self.attempt(recipe)


def sized(recipe: Recipe, sizes: Iterable[Variable], number: int) -> Recipe:
    """The recipe with each of these sizes as near to `number` as the size's limits allow."""
    chosen = {size.key: int(min(max(number, size.lowest), size.highest)) for size in sizes}
    return replace(recipe, sizes={**recipe.sizes, **chosen})
