"""Draws the first inputs of a search, and further ones of other kinds.

Small inputs are drawn first. Where the model refuses them, a recipe that it takes is a goal of the
solver: sizes grow, those that operators compute have to agree, and integers are small or compared.
Further inputs are large, have numbers around those that the model compares with, wide ones, NaN,
and the ends of types.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from bridge.check.inputs.calls import States, calls_in_a_row
from bridge.check.inputs.recipe import Case, Numbers, Recipe
from bridge.check.inputs.running import Keep, Search, always
from bridge.check.inputs.sizes import LONG, misfit, open_sizes
from bridge.check.inputs.solver import Goal, Variable, sized, solve
from bridge.check.surgery.sites import Branch
from bridge.neutral.types import innermost, low
from bridge.vocabulary import operator

SMALL = (2, 3, 1, 0, 4, 5)  # numbers that a model may take where it refuses others
_EMPTY = 4  # dimensions, at most, that are tried with a size of 0
_LARGE = 17  # a large size
_GROWN = 9 / 4, 9 / 8  # so many times the sizes of an input may lead to the same branches
_BORDERS = 4  # sizes, at most, that a model may compare with
_TRIPS = 64  # the most iterations that are asked for
_COMBINATIONS = 4  # of branches that get larger inputs
_GROWING = (*range(2, 9), *(16 << k for k in range(9)))  # sizes, until the model takes one
_WINDOW = 64  # the first size that is tried where windows slide over inputs
_AT_ONCE = 20  # inputs, where a model takes few
_INFERRED = 20  # times as much work as a run is it to look for sizes that disagree
_MARKED = 3  # inputs, at most, for numbers that the model compares with
_WIDE = 30.0  # so many times the usual numbers reach bounds
_SOFT = 0.05  # so many times the usual numbers leave gates open
_FAINT = 1e-3  # so many times the usual numbers show an epsilon; no times give ties and padding


def take_own(search: Search) -> None:
    """Runs the user's inputs."""
    recipes = [replace(search.base, own=one) for one in search.all.own]
    # `make` does not make states that the model holds as variables.
    feeds = [{**r.own.inputs, **search.maker.make(r)} for r in recipes if r.own]
    search.largest = max([search.largest, *map(_most, feeds)])
    if recipes:
        session = search.all.alone or search.all.session
        whys = search.run(recipes, always, session, feeds)
        for one, why in zip(search.all.own, whys, strict=True):
            if why:
                search.failures.append(f"the model does not take {one.where}: {why}")
    search.own = len(search.cases)


def draw(search: Search) -> None:
    """Draws the first inputs, with sizes that grow until the model takes one. If windows slide over
    inputs, only large ones are tried: OpenVINO runs some windows that are larger than their
    data."""
    slides = _slides(search)
    if not slides:
        draw_small(search)
    if not search.drawn:
        _grow(search, [number for number in _GROWING if number >= _WINDOW or not slides])


def draw_small(search: Search) -> None:
    """Draws inputs with the sizes that operators demand, and with sizes from the seed."""
    count = min(search.all.samples, search.all.budget)
    recipes = [replace(search.start, seed=search.start.seed + more) for more in range(count)]
    feeds = [search.maker.make(recipe) for recipe in recipes]
    search.largest = max([search.largest, *(4 * _most(feed) for feed in feeds)])
    search.run(recipes, feeds=feeds)


def _grow(search: Search, sizes: Sequence[int]) -> None:
    """Tries all sizes alike, until the model takes an input."""
    growing = _growing(search)
    rest = [own for own in free_sizes(search) if own not in growing]
    single = sized(search.start, [v for v in rest if v.key not in search.start.sizes], 1)
    bases = (search.start, single) if growing else ()
    any(search.takes(sized(base, growing, number)) for base in bases for number in sizes)


def fit(search: Search) -> None:
    """Seeks a recipe that a model takes which refuses the first ones."""
    slides = _slides(search)
    _agree(search)
    if not search.drawn and slides:
        _grow(search, [number for number in _GROWING if number < _WINDOW])
    if not search.drawn:
        _guess(search)
    if not search.drawn and slides:
        draw_small(search)


def draw_alike(search: Search) -> None:
    """Draws inputs like the first one, as far as some are missing."""
    for case in search.drawn[:1]:
        seeds = range(1, search.lacking + 1)
        search.run(replace(case.recipe, seed=case.recipe.seed + more) for more in seeds)


def _agree(search: Search) -> None:
    """Seeks sizes for which those that operators compute agree."""
    growing = _growing(search)
    work = search.work * _INFERRED

    def distances(recipe: Recipe) -> tuple[float, ...]:
        if search.over(work) or search.endless:
            return ()
        sizes = {key: size for key, size in recipe.sizes.items() if isinstance(size, int)}
        far = misfit(search.all.model, sizes)
        if far:
            return (1 + far,)
        return (0.0 if search.takes(recipe) else 1.0,)

    search.largest = max(search.largest, 1 << 22)
    free = free_sizes(search)
    small = sized(search.base, free, 2)
    goal = Goal(distances, [free], tries=min(400, search.share(work)))
    near, far = solve(goal, [small, sized(small, growing, 2 * _WINDOW)])
    if far and free:
        search.run([near])


def _guess(search: Search) -> None:
    """Tries integers that are small or compared, at a few sizes, and further seeds."""
    start, growing = search.start, _growing(search)
    inputs = search.variables(dict.fromkeys(search.maker.values, True))
    whole = [one for one in inputs if not one.is_size and one.step == 1]
    longer = (sized(start, growing, n * _WINDOW) for n in (2, 16))
    filled = [
        one.put(recipe, number)
        for recipe in (start, *longer)
        for one in whole
        for number in dict.fromkeys((*one.hints, *SMALL))
    ]
    seeds = range(search.all.samples, search.all.budget)
    drawn = [replace(r, seed=r.seed + n) for r in (start, search.base) for n in seeds]
    recipes = [*(recipe for recipe in filled if recipe is not None), *drawn]
    for at in range(0, len(recipes), _AT_ONCE):
        if search.lacking > 0 and not search.over() and not search.endless:
            search.run(recipes[at : at + _AT_ONCE])


def _growing(search: Search) -> list[Variable]:
    """The open sizes that no operator demands, but for batches, which are the first dimension of
    each input, unless there are no others."""
    shapes = [innermost(value.type).shape or () for value in search.maker.values]
    batches = {str(shape[0]) for shape in shapes if shape}
    batches |= {f"{value.name}.0" for value in search.maker.values}
    symbols = search.all.demands.symbols
    batches |= {symbols[key] for key in batches if key in symbols}
    free = [own for own in free_sizes(search) if own.key not in search.start.sizes]
    return [v for v in free if batches.isdisjoint((v.key, symbols.get(v.key)))] or free


def free_sizes(search: Search) -> list[Variable]:
    """All open sizes that the user left open, without those that follow from others."""
    free = search.variables(dict.fromkeys(search.maker.values, False))
    return [own for own in free if not _follows(search, own.key)]


def _follows(search: Search, key: str) -> bool:
    """Whether a size follows from others."""
    symbol = search.all.demands.symbols.get(key, key)
    return key not in search.base.sizes and symbol in search.maker.following(search.base.sizes)


def draw_further(search: Search) -> None:
    """Draws large inputs, and ones with numbers of other kinds."""
    case = next((one for one in search.drawn if not one.recipe.call), None)
    if case is None:
        return
    recipe = replace(case.recipe, seed=case.recipe.seed + search.all.samples)
    recipe = _draw_large(search, case, recipe)
    uses = {v: u for v, u in search.maker.uses.items() if v.name not in recipe.chosen}
    elements = {v: v.element for v in uses if v.element is not None}
    is_short = search.all.quick
    floats = [v.name for v, element in elements.items() if element.is_float and not is_short]
    # OpenVINO keeps integers of variables in 32 bits.
    wide = search.all.states is None and any(
        uses[v].is_wide and element.is_integer and element.bits > 8
        for v, element in elements.items()
    )
    marks = max((len(u.marks) for u in uses.values()), default=0)
    # An input is large enough for all marks, or has some.
    room = min((np.size(search.cases[-1].feeds[v.name]) for v in uses if uses[v].marks), default=1)
    count = min(_MARKED, -(-marks // max(room // 2, 1)))
    kinds: dict[Numbers, int] = {
        "special": any(u.special for u in uses.values()),
        "ends": wide,
        "marked": max(count, bool(floats)),
        "filled": min(_MARKED, marks),
    }
    further = [
        replace(recipe, seed=recipe.seed + more, numbers=kind, turn=more)
        for kind, count in kinds.items()
        for more in range(count)
    ]
    search.run(further, always)
    if is_short:
        return
    whole = [v.name for v, element in elements.items() if element.is_integer]
    none = [v.name for v, element in elements.items() if element.kind == "bool"]
    # A model that looks at nothing at all may give NaN.
    still = [[*floats, *whole, *none], [*floats, *whole]][: 1 + bool(none)]
    for lots, scale in (([floats], _WIDE), ([floats], _FAINT), (still, 0.0)):
        scaled = (
            replace(
                recipe,
                seed=recipe.seed + 1,
                scales={**recipe.scales, **dict.fromkeys(names, scale)},
            )
            for names in lots
            if names
        )
        any(_adds(search, one, _is_finite) for one in scaled)


def _adds(search: Search, recipe: Recipe, keep: Keep) -> bool:
    """Runs an input. The answer is whether it is kept."""
    before = len(search.cases)
    search.run([recipe], keep)
    return len(search.cases) > before


def enlarge(search: Search) -> None:
    """Draws inputs with the sizes that a file compares with or cuts at, and beyond them, and for
    each combination of branches an input of other sizes than the first."""
    plain = [one for one in search.drawn if not one.recipe.call]
    free = [v for v in free_sizes(search) if v.key not in search.start.sizes]
    uses = [use.name for its in search.maker.uses.values() for use in its.all]
    if not plain or not (free or "trip_count" in uses) or search.over():
        return
    growing, like = _growing(search), _like(search, plain[0])
    limits = search.limits
    borders = limits[: _BORDERS if growing else 0]
    search.run([sized(plain[0].recipe, growing, number) for number in borders], always)
    beyond = [number + 2 for number in sorted(limits, reverse=True)[:_BORDERS]]
    large = (replace(sized(like, growing, n), large=min(n, _TRIPS)) for n in beyond)
    any(_adds(search, one, always) for one in large)
    firsts: dict[frozenset[Branch], Case] = {}
    for case in plain:
        firsts.setdefault(case.taken, case)
    for taken, case in [*firsts.items()][:_COMBINATIONS]:
        tops = {max(search.open_of(one), default=0) for one in search.drawn if one.taken == taken}
        if free and (len(tops) == 1 or max(tops) < _LARGE):
            keep: Keep = lambda new, taken=taken: new.taken == taken  # noqa: E731
            if any(_adds(search, one, keep) for one in _larger(search, case, free)):
                recipe = search.cases[-1].recipe
                floats = [v.name for v in search.maker.values if v.element and v.element.is_float]
                scales = dict(recipe.scales) | dict.fromkeys(floats, _SOFT)
                search.run([replace(recipe, seed=recipe.seed + 1, scales=scales)], keep)


def _like(search: Search, case: Case) -> Recipe:
    """The recipe of a case with all its sizes."""
    sizes = {k: n for k, n in search.sizes_of(case).items() if not _follows(search, k)}
    return replace(case.recipe, sizes=sizes)


def _larger(search: Search, case: Case, free: Sequence[Variable]) -> Iterator[Recipe]:
    """Recipes like that of a case with larger and odd sizes: all, or those that are equal."""
    like = _like(search, case)
    alike = groupby(sorted(free, key=lambda v: -v.of(like)), lambda v: v.of(like))
    groups = [(size, [*some]) for size, some in alike]
    for some in (groups, *([one] for one in groups)):
        for times in _GROWN:
            recipe = like
            for size, own in some:
                recipe = sized(recipe, own, int(size * times) + 1)
            yield recipe


def _is_finite(case: Case) -> bool:
    """Whether all numbers that the model gives are finite. Engines overflow at other places."""
    arrays = (one for one in case.outputs.values() if isinstance(one, np.ndarray))
    with np.errstate(all="ignore"):
        return all(
            bool(np.isfinite(one.astype(np.float64)).all())
            for one in arrays
            if one.dtype.kind in "fV"
        )


def _draw_large(search: Search, case: Case, recipe: Recipe) -> Recipe:
    """Draws an input with all sizes large, or one alone, and one that is as long as a table. Gives
    the recipe of the first that the model takes, or the recipe itself."""
    large = replace(recipe, large=_LARGE)
    free = [v for v in free_sizes(search) if v.key not in search.start.sizes]
    is_small = all(size < _LARGE for size in search.open_of(case))
    like = replace(large, sizes=_like(search, case).sizes)
    one_each = [v.put(like, _LARGE) for v in reversed(free)] if is_small else []
    uses = {v: u for v, u in search.maker.uses.items() if v.name not in recipe.chosen}
    counted = any(use.name == "trip_count" for u in uses.values() for use in u.all)
    # All sizes at once, but of a large model one alone; each alone if the model refuses that.
    tries = [
        *([] if search.all.quick else [large]),
        *one_each[:_EMPTY],
        *([like] if counted else []),
    ]
    taken = recipe
    for one in tries if counted or one_each else ():
        if one is not None and search.takes(one, always):
            taken = one
            break
    for value, its in {} if search.all.quick else uses.items():
        rows = max((use.rows for use in its.all), default=0)
        array, key = case.feeds.get(value.name), [*open_sizes(value)][-1:]
        if isinstance(array, np.ndarray) and _LARGE < rows <= LONG:
            others = max(math.prod(array.shape[:-1]), 1)
            long = [v.put(replace(like, large=0), -(-rows // others)) for v in free]
            fits = [r for v, r in zip(free, long, strict=True) if [v.key] == key and r is not None]
            if fits and search.takes(fits[0], always):
                break
    return taken


def call_in_a_row(search: Search, states: States) -> None:
    """Makes a first call with empty states, and calls that take the states of the call before."""
    session = search.all.session
    alone = search.all.alone or session
    calls, why = calls_in_a_row(states, search.start, search.maker, session)
    if alone is not session:
        more, why = calls_in_a_row(states, search.start, search.maker, alone)
        if len(more) > len(calls):
            calls, session = more, alone
    search.no_row = "" if calls else why
    for recipe, feeds in calls:
        place = len(search.cases)
        if search.run([recipe], always, session, [feeds]) == [""]:
            search.row.append(place)


def draw_empty(search: Search) -> None:
    """Tries inputs with one open dimension of size 0, if 0 is allowed. States that are set once
    keep their elements. If no other inputs were found, `samples` of each are tried."""
    states = search.all.states
    once: Set[str] = set() if states is None else states.once
    set_once = {key for v in search.maker.values if v.name in once for key in open_sizes(v)}
    keys = [k for k, dim in search.open.items() if not low(search.base.sizes.get(k, dim))]
    count = 1 if search.drawn else search.all.samples
    start = search.start
    for key in sorted({*keys} - set_once)[:_EMPTY]:
        for n in range(count):  # one by one, as an engine may crash
            recipe = replace(start, seed=start.seed + n, sizes={**start.sizes, key: 0})
            search.run([recipe], always)


def _slides(search: Search) -> bool:
    """Whether an operator outside of bodies slides a window over its input."""
    rows = (operator(node.op) for node in search.all.model.graph.nodes)
    return any(row is not None and "strides" in row.attributes for row in rows)


def _most(value: Any) -> int:
    """The number of elements of the largest tensor in an input."""
    if isinstance(value, list | dict):
        return max(map(_most, value.values() if isinstance(value, dict) else value), default=0)
    return getattr(value, "size", 0)
