"""Seeks inputs for situations that no input has met yet, as far as the budget goes."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bridge.check.inputs.recipe import Case, Recipe
from bridge.check.inputs.running import Search
from bridge.check.inputs.solver import Goal, Variable, solve
from bridge.check.surgery.situations import Situation
from bridge.neutral.graph import Value

_RUNS = 240  # for all situations of a model
_TRIES = 48  # for one
_AT_NODE = 8  # situations of one node that are sought
_KEPT = 24  # inputs that situations add
_SPOTS = 12  # single elements of an input that may be changed
_STARTS = 3
_SHARE = 1 / 3  # of the work of a search
_FARTHEST = 1e4  # number that a situation may need; engines round larger ones unlike
_WIDE = 2.0**60

_COUNTED = ("rows", "sides")
"""Kinds of which one more, met by chance, is no reason to keep an input."""


def seek_situations(search: Search) -> None:
    """Seeks an input for each situation. Those that few changes may meet come first."""
    left = _RUNS
    floor = search.left - search.limit * _SHARE
    by_node: dict[str, int] = {}
    kept = len(search.cases)
    order = sorted(range(len(search.all.situations)), key=lambda n: _rank(search.all.situations[n]))
    for number in order:
        one = search.all.situations[number]
        by_node[one.where] = by_node.get(one.where, 0) + 1
        if number in search.met or one.kind.startswith("rows"):
            continue
        done = left <= 0 or search.left < floor or search.endless
        if done or search.over() or len(search.cases) - kept >= _KEPT:
            break
        if by_node[one.where] <= _AT_NODE or one.kind == "thresholds":
            left -= _seek(search, number, min(_TRIES, left))


def _rank(one: Situation) -> int:
    kinds = ["windows", "sizes", "iterations", "sides", "close", "equal", "ties", "thresholds"]
    return kinds.index(one.kind) if one.kind in kinds else len(kinds)


def _seek(search: Search, number: int, tries: int) -> int:
    """Seeks one situation. The answer is how many inputs were run."""
    one = search.all.situations[number]
    cases = [case for case in search.drawn if case.far and not case.recipe.call]
    cases = sorted(cases, key=lambda case: case.far[number])
    least = min(cases, key=lambda case: (np.isinf(case.far[number]), case.elements), default=None)
    cases = [*cases[:_STARTS], *([least] if least else [])]
    if not cases or not np.isfinite(cases[0].far[number]):
        on_grid = [c for c in search.drawn if c.is_on_grid and c.far] if one.on_grid else []
        if not on_grid or not one.on_grid:
            return 0
        cases = on_grid[:1]
    runs = 0

    def distances(recipe: Recipe) -> tuple[float, ...]:
        nonlocal runs
        if search.over():
            return ()
        runs += 1
        search.last = ()
        search.run([recipe], lambda case: _shows(search, case))
        far = search.last[number] if search.last else np.inf
        return (far,) if np.isfinite(far) else ()

    variables = [*_variables(search, one, cases[0])]
    if variables:
        goal = Goal(distances, [variables], tries, short=True)
        solve(goal, [case.recipe for case in cases])
    return runs


def _shows(search: Search, case: Case) -> bool:
    """Whether an input meets a situation that no other met, and engines agree about it."""
    new = [search.all.situations[n] for n in search.shown(case)]
    wide = any(one.kind == "ranges" for one in new)
    some = any(not one.kind.startswith(_COUNTED) for one in new)
    return some and case.is_finite and (wide or not case.is_extreme)


def _variables(search: Search, one: Situation, case: Case) -> Iterator[Variable]:
    """What may be changed to meet a situation, in the order in which it is tried."""
    values = {v.name: v for v in search.maker.values if v.name not in search.base.chosen}
    asked = {values[name]: False for name in sorted(one.sizes) if name in values}
    for variable in search.variables(asked):
        if variable.is_size:
            size = search.sizes_of(case).get(variable.key, variable.of(case.recipe))
            yield replace(variable, usual=float(size) if isinstance(size, int) else variable.usual)
    for name in sorted(one.numbers):
        array = case.feeds.get(name)
        if name in values and isinstance(array, np.ndarray) and array.dtype.kind in "iuf":
            yield from _numbers(search, one, case.recipe, values[name], array.reshape(-1))


def _numbers(
    search: Search, one: Situation, recipe: Recipe, value: Value, flat: np.ndarray
) -> Iterator[Variable]:
    """How the numbers of an input may be changed: all by a factor, one alone, or all alike."""
    middle = float(np.median(flat.astype(np.float64))) if flat.size else math.nan
    element, name = value.element, value.name
    if not math.isfinite(middle) or element is None:
        return
    is_float = element.is_float
    most = _WIDE if one.kind == "ranges" else _FARTHEST if is_float else 2.0**24
    least, most = (
        (-most, most) if is_float else (max(-most, element.bounds[0]), min(most, element.bounds[1]))
    )
    step = (2.0**-6 if one.on_grid else 2.0**-20) if is_float else 1.0
    hints = tuple(search.hints.get(name, ()))[:4]
    if one.on_grid:
        hints = tuple(hint for hint in hints if hint * 64 == round(hint * 64))
    if is_float and not one.on_grid and flat.size > 1:
        yield Variable(name, "scales", 0.0, most, step, recipe.scales.get(name, 1.0))
    for place in range(min(flat.size, _SPOTS)) if flat.size > 1 else ():
        if np.isfinite(flat[place]):
            yield Variable((name, place), "spots", least, most, step, float(flat[place]), hints)
    yield Variable(name, "fills", least, most, step, middle, hints)
