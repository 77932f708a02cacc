"""Draws the first inputs of a search.

Small inputs are drawn first. Where the model refuses them, a recipe that it takes is a goal of the
solver: sizes grow, those that operators compute have to agree, and integers are small or compared.
"""

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import Any

from bridge.check.inputs.calls import States, calls_in_a_row
from bridge.check.inputs.draw import LARGEST_INPUT
from bridge.check.inputs.recipe import Recipe
from bridge.check.inputs.running import Search, always
from bridge.check.inputs.sizes import misfit, open_sizes
from bridge.check.inputs.solver import Goal, Variable, sized, solve
from bridge.neutral.types import innermost, low
from bridge.vocabulary import operator

SMALL = (2, 3, 1, 0, 4, 5)  # numbers that a model may take where it refuses others
_EMPTY = 4  # dimensions, at most, that are tried with a size of 0
_GROWING = (*range(2, 9), *(16 << k for k in range(9)))  # sizes, until the model takes one
_WINDOW = 64  # the first size that is tried where windows slide over inputs
_AT_ONCE = 20  # inputs, where a model takes few
_INFERRED = 5  # times as much work as a run is it to look for sizes that disagree


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
    data. Sizes that are fixed are taken as they are."""
    shapes = [innermost(value.type).shape or () for value in search.maker.values]
    least = (math.prod(max(low(dim), 1) for dim in shape) for shape in shapes)
    search.largest = max([search.largest, *(min(2 * count, LARGEST_INPUT) for count in least)])
    slides = _slides(search)
    if not slides:
        draw_small(search)
    if not search.drawn:
        sizes = [number for number in _GROWING if number >= _WINDOW or not slides]
        any(map(search.adds, _alike(search, sizes)))


def draw_small(search: Search) -> None:
    """Draws inputs with the sizes that operators demand, and with sizes from the seed."""
    count = min(search.all.samples, search.all.budget)
    recipes = [replace(search.start, seed=search.start.seed + more) for more in range(count)]
    feeds = [search.maker.make(recipe) for recipe in recipes]
    search.largest = max([search.largest, *(4 * _most(feed) for feed in feeds)])
    search.run(recipes, feeds=feeds)


def _alike(search: Search, sizes: Sequence[int]) -> Iterator[Recipe]:
    """Recipes with all sizes alike."""
    growing = growing_sizes(search)
    rest = [v for v in free_sizes(search) if v not in growing and v.key not in search.start.sizes]
    bases = (search.start, sized(search.start, rest, 1)) if growing else ()
    return (sized(base, growing, number) for base in bases for number in sizes)


def fit(search: Search) -> None:
    """Seeks a recipe that a model takes which refuses the first ones: with sizes that agree, with
    small ones for windows, with integers that are small or compared, and with further seeds."""
    search.lengthen()
    _agree(search)
    start, growing, slides = search.start, growing_sizes(search), _slides(search)
    inputs = search.variables(dict.fromkeys(search.maker.values, True))
    longer = (sized(start, growing, n * _WINDOW) for n in (2, 16))
    filled = (
        one.put(recipe, number)
        for recipe in (start, *longer)
        for one in inputs
        for number in dict.fromkeys((*one.hints, *SMALL))
        if not one.is_size and one.step == 1
    )
    small = _alike(search, [number for number in _GROWING if number < _WINDOW] if slides else [])
    seeds = range(0 if slides else search.all.samples, search.all.budget)
    drawn = (replace(r, seed=r.seed + n) for r in (start, search.base) for n in seeds)
    recipes = iter([recipe for recipe in (*small, *filled, *drawn) if recipe is not None])
    while not (search.drawn or search.over() or search.endless):
        if not search.run(islice(recipes, _AT_ONCE)):
            break


def draw_alike(search: Search) -> None:
    """Draws inputs like the first one, as far as some are missing."""
    for case in search.drawn[:1]:
        seeds = range(1, search.lacking + 1)
        search.run(replace(case.recipe, seed=case.recipe.seed + more) for more in seeds)


def _agree(search: Search) -> None:
    """Seeks sizes for which those that operators compute agree."""
    growing = growing_sizes(search)
    work = search.work * _INFERRED

    def distances(recipe: Recipe) -> tuple[float, ...]:
        if search.over(work) or search.endless:
            return ()
        sizes = {key: size for key, size in recipe.sizes.items() if isinstance(size, int)}
        far = misfit(search.all.model, sizes)
        if far:
            return (1 + far,)
        return (0.0 if search.adds(recipe) else 1.0,)

    search.largest = max(search.largest, 1 << 22)
    free = free_sizes(search)
    rest = [size for size in free if size.key not in search.start.sizes]
    small = sized(search.start, rest, 2)
    wanted = dict.fromkeys((*growing, *free))  # A batch seldom matters.
    goal = Goal(distances, [[*wanted]], tries=min(400, search.share(work)))
    near, far = solve(goal, [small, sized(small, growing, 2 * _WINDOW)])
    if far and free:
        search.run([near])


def growing_sizes(search: Search) -> list[Variable]:
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
    return [own for own in free if not follows(search, own.key)]


def follows(search: Search, key: str) -> bool:
    """Whether a size follows from others."""
    symbol = search.all.demands.symbols.get(key, key)
    return key not in search.base.sizes and symbol in search.maker.following(search.base.sizes)


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
