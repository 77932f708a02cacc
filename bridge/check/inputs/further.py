"""Draws further inputs like those that a model takes: large ones, with numbers around those that a
file compares with, wide ones, NaN, and the ends of types; and more inputs for each branch."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice

import numpy as np

from bridge.check.inputs.drawn import follows, free_sizes, growing_sizes
from bridge.check.inputs.recipe import Case, Numbers, Recipe
from bridge.check.inputs.running import Keep, Search, always
from bridge.check.inputs.solver import Variable, sized
from bridge.check.surgery.sites import SEVERAL, Branch

_LARGE = 17  # a large size
_GROWN = (9 / 4, _LARGE), (9 / 8, 0)  # so many times a size, and the least, are tried
_BORDERS = 4  # sizes, at most, that a model may compare with
_TRIPS = 64  # the most iterations that are asked for
_COMBINATIONS = 4  # of branches that get larger inputs
_MARKED = 3  # inputs, at most, for numbers that the model compares with
_SCALES = 30.0, 0.05, 1e-3  # reach bounds, leave gates open, and show an epsilon
_TAKERS = 5  # inputs that each branch is compared with, if the search finds them
_FEEDS = 24  # inputs that are compared, unless more are needed to take all branches
_SEEDS = 6  # seeds for combinations of branches

_VARIED = (0, 1e-3), (0, -30.0), (6, 1.0), (7, 30.0), (8, 300.0)
"""Other seeds, and scales of floats, for branches that few inputs take."""


def draw_further(search: Search) -> None:
    """Draws large inputs, and ones with numbers of other kinds."""
    case = next((one for one in search.drawn if not one.recipe.call), None)
    if case is None:
        return
    recipe = _draw_large(search, case)
    uses = {v: u for v, u in search.maker.uses.items() if v.name not in recipe.chosen}
    # OpenVINO keeps integers of variables in 32 bits.
    wide = search.all.states is None and any(
        u.is_wide and v.element.is_integer and v.element.bits > 8
        for v, u in uses.items()
        if v.element is not None
    )
    marks = max((len(u.marks) for u in uses.values()), default=0)
    # An input is large enough for all marks, or has some.
    room = min((np.size(search.cases[-1].feeds[v.name]) for v in uses if uses[v].marks), default=1)
    floats = [] if search.all.quick else _of_kind(search, "float")
    kinds: dict[Numbers, int] = {
        "special": any(u.special for u in uses.values()),
        "ends": wide,
        "marked": max(min(_MARKED, -(-marks // max(room // 2, 1))), bool(floats)),
        "filled": min(_MARKED, marks),
    }
    search.run(
        [
            replace(recipe, seed=recipe.seed + more, numbers=kind, turn=more)
            for kind, count in kinds.items()
            for more in range(count)
        ],
        always,
    )
    for factor in _SCALES if floats else ():
        search.run([recipe.scaled(floats, factor, 1)], _is_finite)


def draw_zeros(search: Search) -> None:
    """Draws an input of zeros: it gives ties and padding. It comes late, as it shows little of a
    branch that it takes."""
    numbers, truths = _of_kind(search, "float", "int", "uint"), _of_kind(search, "bool")
    # A model that looks at nothing at all may give NaN.
    lots = [[*numbers, *truths], numbers] if truths else [numbers]
    for case in [one for one in search.drawn if not one.recipe.call][:1]:
        zeros = (case.recipe.scaled(names, 0.0, 1) for names in lots if names)
        any(search.adds(recipe, _is_finite) for recipe in zeros)
        if search.all.sites and len(numbers) > 1:  # A branch on 0 may show in the other inputs.
            alone = [case.recipe.scaled([name], 0.0, 1) for name in numbers[:_BORDERS]]
            search.run(alone, _is_finite)


def _of_kind(search: Search, *kinds: str) -> list[str]:
    """The inputs of some kinds of types that are free."""
    free = (v for v in search.maker.values if v.name not in search.base.chosen)
    return [v.name for v in free if v.element is not None and v.element.kind in kinds]


def _is_finite(case: Case) -> bool:
    """Whether all numbers that the model gives are finite. Engines overflow at other places."""
    arrays = (one for one in case.outputs.values() if isinstance(one, np.ndarray))
    floats = (one.astype(np.float64) for one in arrays if one.dtype.kind in "fV")
    with np.errstate(all="ignore"):
        return all(bool(np.isfinite(one).all()) for one in floats)


def _draw_large(search: Search, case: Case) -> Recipe:
    """Draws an input with all sizes large, or some. Gives the recipe of the first that the model
    takes, or one like that of the case."""
    recipe = replace(case.recipe, seed=case.recipe.seed + search.all.samples)
    free, quick = _free(search), search.all.quick
    large, like = replace(recipe, large=_LARGE), replace(_like(search, case), seed=recipe.seed)
    tries = [*([large] if free and not quick else []), *_larger(like, free, not quick)]
    tries += [replace(like, large=_LARGE)] if _is_counted(search) else []
    return next((one for one in tries if search.adds(one)), recipe)


def _free(search: Search) -> list[Variable]:
    """The sizes that neither the user nor an operator chose."""
    return [v for v in free_sizes(search) if v.key not in search.start.sizes]


def _is_counted(search: Search) -> bool:
    """Whether an input counts the iterations of a Loop."""
    free = (u for v, u in search.maker.uses.items() if v.name not in search.base.chosen)
    return any(use.name == "trip_count" for uses in free for use in uses.all)


def _like(search: Search, case: Case) -> Recipe:
    """The recipe of a case with all its sizes."""
    sizes = {k: n for k, n in search.sizes_of(case).items() if not follows(search, k)}
    return replace(case.recipe, sizes=sizes)


def _larger(like: Recipe, free: Sequence[Variable], every: bool = True) -> Iterator[Recipe]:
    """Recipes with larger and odd sizes: all of them, if `every` is set, and those that are
    equal."""
    alike = groupby(sorted(free, key=lambda v: -v.of(like)), lambda v: v.of(like))
    groups = [(size, [*some]) for size, some in alike]
    for some in [groups] * (every and len(groups) > 1) + [[one] for one in groups]:
        for times, least in _GROWN:
            recipe = like
            for place, (size, own) in enumerate(some):
                recipe = sized(recipe, own, max(int(size * times) + 1, least) + place)
            yield recipe


def enlarge(search: Search) -> None:
    """Draws inputs with sizes that a file compares with, cuts at, or has a table of, and beyond
    them, and for each combination of branches an input of other sizes than the first."""
    plain = [one for one in search.drawn if not one.recipe.call]
    free = _free(search)
    if not plain or not (free or _is_counted(search)) or search.over():
        return
    growing, like = growing_sizes(search), _like(search, plain[0])
    borders = search.limits[: _BORDERS if growing else 0]
    search.run([sized(plain[0].recipe, growing, number) for number in borders], always)
    beyond = [number + 2 for number in sorted(search.limits, reverse=True)[:_BORDERS]]
    any(search.adds(replace(sized(like, growing, n), large=min(n, _TRIPS))) for n in beyond)
    firsts: dict[frozenset[Branch], Case] = {}
    for case in plain:
        firsts.setdefault(case.taken, case)
    for taken, case in [*firsts.items()][:_COMBINATIONS]:
        sizes = {(*search.open_of(one),) for one in search.drawn if one.taken == taken}
        if free and (len(sizes) == 1 or max(chain(*sizes), default=0) < _LARGE):

            def same(new: Case, taken: frozenset[Branch] = taken) -> bool:
                return new.taken == taken

            if any(search.adds(one, same) for one in _larger(_like(search, case), free)):
                soft = search.cases[-1].recipe.scaled(_of_kind(search, "float"), _SCALES[1], 1)
                search.run([soft], same)


def deepen(search: Search) -> None:
    """Adds inputs for branches that few inputs take, and inputs that take branches together that no
    input took together: a single input may hide a difference."""
    for branch in sorted(search.reached):
        case = search.cases[search.reached[branch]]
        lacking = _TAKERS - sum(branch in one.taken for one in search.cases)
        more = [_one_more(case)] if branch[1] == SEVERAL and case.recipe.own is None else []
        new = [*more, *islice(_varied(search, case), lacking + 1 if lacking > 0 else 0)]
        _add(search, new, lambda case, branch=branch: branch in case.taken)  # type: ignore[misc]
    drawn = [case.recipe for case in search.cases if case.recipe.own is None]
    if len(search.all.sites) > 1 and drawn:
        seeds = range(_SEEDS, 2 * _SEEDS)
        new = [replace(drawn[0], seed=drawn[0].seed + more) for more in seeds]
        _add(search, new, lambda case: all(case.taken != one.taken for one in search.cases))


def _one_more(case: Case) -> Recipe:
    """The recipe with single integers that are greater by one. If they count a Loop, an odd number
    of iterations becomes an even one: states may change places in each."""
    some = {n: x for n, x in case.feeds.items() if getattr(x, "size", 0) == 1}
    alone = {n: x.item() + 1 for n, x in some.items() if x.dtype.kind in "iu"}
    return replace(case.recipe, fills={**case.recipe.fills, **alone})


def _varied(search: Search, case: Case) -> Iterator[Recipe]:
    """The recipe with the other sign, with smaller and larger numbers, and with other seeds. A
    single number stays the same with other seeds: it may choose the branch. Integers change only
    their sign, because engines hold large integers in 32 bits."""
    recipe = case.recipe
    names = {name for name in case.feeds if name not in recipe.fills}
    floats, whole = ([n for n in _of_kind(search, kind) if n in names] for kind in ("float", "int"))
    single = {n: case.feeds[n] for n in names if getattr(case.feeds[n], "size", 0) == 1}
    held = {n: float(x.item()) for n, x in single.items() if x.dtype.kind in "biu"}
    if recipe.own is None:
        yield recipe.scaled(whole, -1.0)
    for more, factor in _VARIED:
        if recipe.own is None or (floats and factor != 1):
            fills = {**recipe.fills, **(held if more else {})}
            yield replace(recipe, fills=fills).scaled(floats if factor != 1 else [], factor, more)


def _add(search: Search, recipes: Sequence[Recipe], keep: Keep) -> None:
    """Runs inputs, unless there are enough, that are neither known nor extreme."""
    known = [case.recipe for case in search.cases]
    new = [recipe for recipe in recipes if recipe not in known]
    made = [Case(recipe, search.make(recipe), {}) for recipe in new]
    plain = [case for case in made if not case.is_extreme]
    if plain and len(search.cases) < _FEEDS and not search.over():
        search.run([case.recipe for case in plain], keep, feeds=[case.feeds for case in plain])
