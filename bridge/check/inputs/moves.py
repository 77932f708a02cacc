"""Fixed moves: inputs like those that a model takes, with other sizes and numbers.

A fault may add a bound that the original does not declare, so that no situation of the original
would show it. These few moves run for each model.
"""

from collections.abc import Iterator
from dataclasses import replace

from bridge.check.inputs.drawn import follows, free_sizes, growing_sizes
from bridge.check.inputs.recipe import Case, Recipe
from bridge.check.inputs.running import PER_SIZE, Search, always
from bridge.check.inputs.solver import Variable, sized
from bridge.check.surgery.sites import Branch

_SCALES = 0.001, 0.1, 10.0, 100.0, 1000.0, 0.0  # of all floats; zeros give ties and padding
_MANY = 101  # iterations, or another integer scalar
_SOME = 1000  # elements of inputs that are scaled, or about so many
_LARGE = 17  # the least of all sizes
_LONG = 600  # of one size
_LONG_WORK = 20_000  # nodes times sizes by which runs take longer: no longer inputs are tried
_BORDERS = 4  # sizes, at most, that a file may compare with
_MARKED = 3  # inputs, at most, of numbers near limits
_TOGETHER = 16  # times as many numbers near limits are drawn: trees ask for some together
_COVERED = 4096  # rows of a table, at most, that an input reads
_COMBINATIONS = 4  # of branches that get all scales
_TAKERS = 3  # inputs that each branch is compared with, if the search finds them
_FEEDS = 32  # inputs, then no more are added for branches


def move(search: Search) -> None:
    """Makes all moves, of a quick search few."""
    plain = [case for case in search.drawn if not case.recipe.call]
    if not plain:
        return
    base = _like(search, plain[0])
    if not search.all.quick:
        _move_sizes(search, base)
        base = next((c.recipe for c in search.drawn[::-1] if c.taken == plain[0].taken), base)
    _move_numbers(search, replace(base, seed=base.seed + search.all.samples))


def _move_numbers(search: Search, base: Recipe) -> None:
    uses = {v: u for v, u in search.maker.uses.items() if v.name not in base.chosen}
    # OpenVINO keeps integers of variables in 32 bits.
    wide = search.all.states is None and any(
        u.is_wide and v.element.is_integer and v.element.bits > 8
        for v, u in uses.items()
        if v.element is not None
    )
    quick, floats = search.all.quick, of_kind(search, "float")
    marks = max((len(u.marks) for u in uses.values()), default=0)
    recipes = [replace(base, numbers="special")] * any(u.special for u in uses.values())
    recipes += [replace(base, numbers="ends")] * wide
    count = min(_MARKED, -(-marks // 4)) if marks else not quick and bool(floats)
    recipes += [replace(base, numbers="marked", turn=n, seed=base.seed + n) for n in range(count)]
    search.run(recipes, always)
    if quick:
        return
    masks = of_kind(search, "bool") + [v.name for v, u in uses.items() if u.is_yes_or_no]
    halves = [replace(base, numbers="halves")] * bool(floats)
    ones = [replace(base, fills={**base.fills, **dict.fromkeys(masks, 1)})] * bool(masks)
    search.run([*halves, *ones, *_many(search, base)], search.agreed)
    firsts: dict[frozenset[Branch], Case] = {}
    plain = [case for case in search.drawn if not (case.recipe.call or case.is_empty)]
    for case in sorted(plain, key=lambda case: abs(case.elements - _SOME)):
        firsts.setdefault(case.taken, case)
    # Of a model that looks at nothing at all not all inputs can be 0.
    numbers = [floats + masks, floats]
    for case in [*firsts.values()][:_COMBINATIONS]:
        for factor in _SCALES if floats else ():
            for names in numbers if masks and not factor else [floats]:
                if search.adds(case.recipe.scaled(names, factor, 1), search.agreed):
                    break


def _many(search: Search, base: Recipe) -> Iterator[Recipe]:
    """Large integer scalars: trip counts and others."""
    for value, uses in search.maker.uses.items():
        shape = search.maker.make(base).get(value.name)
        alone = getattr(shape, "size", 0) == 1 and value.name in of_kind(search, "int", "uint")
        if alone and not any(use.is_index for use in uses.all):
            yield replace(base, fills={**base.fills, value.name: _MANY})


def _move_sizes(search: Search, like: Recipe) -> None:
    """Large sizes, sizes unlike each other, odd ones, those that a file compares with, and long
    ones, as far as the model takes them."""
    free = [v for v in free_sizes(search) if v.key not in search.start.sizes]
    growing = growing_sizes(search)
    counted = any(use.name == "trip_count" for u in search.maker.uses.values() for use in u.all)
    if not (free or counted):
        return
    seed = like.seed + search.all.samples
    start = replace(like, seed=seed)
    tries = [replace(search.start, seed=seed, large=_LARGE)] if free else []
    tries += [*_larger(start, free)] + [replace(start, large=_LARGE)] * counted
    any(search.adds(one) for one in tries)
    unlike = [*_unlike(start, growing)]
    for lot in (unlike[::2], unlike[1::2]):  # even and odd
        any(search.adds(one) for one in lot)
    borders = [n for n in search.limits if _affordable(search, n)][: _BORDERS if growing else 0]
    search.run([sized(start, growing, number) for number in borders], always)
    for number in sorted(borders, reverse=True):
        search.adds(sized(start, growing, number + 2))
    if _affordable(search, _LONG):
        any(search.adds(sized(start, [one], _LONG + 1)) for one in growing[::-1])
    rows = [_rows(search)] if growing else []
    search.run([replace(sized(start, growing, n), numbers="marked") for n in rows if n], always)


def _affordable(search: Search, size: int) -> bool:
    return size <= PER_SIZE or search.work * size / PER_SIZE < _LONG_WORK


def _rows(search: Search) -> int:
    """The most rows that an input chooses from, and so the size that reads them all."""
    found = [0]
    for uses in search.maker.uses.values():
        marks = min(_TOGETHER * len(uses.marks), _COVERED)
        found += [marks] if len(uses.marks) > _LARGE else []
        found += [n for use in uses.all for n in use.rows if n > _LARGE]
    return max((n for n in found if n <= _COVERED and _affordable(search, n)), default=0)


def _larger(like: Recipe, free: list[Variable]) -> Iterator[Recipe]:
    """Recipes with larger sizes: of all, and of those that are equal."""
    alike: dict[float, list[Variable]] = {}
    for one in free:
        alike.setdefault(-one.of(like), []).append(one)
    groups = [alike[size] for size in sorted(alike)]
    for some in [groups] * (len(groups) > 1) + [[one] for one in groups]:
        for times, least in ((9 / 4, _LARGE), (9 / 8, 0)):
            recipe = like
            for place, own in enumerate(some):
                size = own[0].of(like)
                recipe = sized(recipe, own, max(int(size * times) + 1, least) + place)
            yield recipe


def _unlike(like: Recipe, growing: list[Variable]) -> Iterator[Recipe]:
    """Recipes with sizes unlike each other, even ones and odd ones in turn: the steps of images and
    windows are small, or powers of two."""
    for step in (1, 2, 8, 32):
        for odd in (0, 1):
            recipe = like
            for place, one in enumerate(growing):
                size = int(one.of(like))
                base = (size + 1) // 2 * 2 if step == 1 else -(-size // step) * step
                number = base + step * (place + (step > 1)) * 2 + odd * (step == 1 or step // 2)
                recipe = sized(recipe, [one], number)
            yield recipe


def of_kind(search: Search, *kinds: str) -> list[str]:
    """The inputs of some kinds of types that are free."""
    free = (v for v in search.maker.values if v.name not in search.base.chosen)
    return [v.name for v in free if v.element is not None and v.element.kind in kinds]


def _like(search: Search, case: Case) -> Recipe:
    """The recipe of a case with all its sizes."""
    sizes = {k: n for k, n in search.sizes_of(case).items() if not follows(search, k)}
    return replace(case.recipe, sizes=sizes)


def repeat_branches(search: Search) -> None:
    """Adds inputs for branches that few inputs take, and inputs that take branches together that no
    input took together: a single input may hide a difference."""
    floats, whole = of_kind(search, "float"), of_kind(search, "int")
    for branch in sorted(search.reached):
        case = search.cases[search.reached[branch]]
        lacking = _TAKERS - sum(branch in one.taken for one in search.cases)
        names = {name for name in case.feeds if name not in case.recipe.fills}
        single = {n: case.feeds[n] for n in names if getattr(case.feeds[n], "size", 0) == 1}
        held = {n: float(x.item()) for n, x in single.items() if x.dtype.kind in "biu"}
        some = [n for n in floats if n in names]
        again = replace(case.recipe, fills={**case.recipe.fills, **held})
        new = [case.recipe.scaled(some, -1.0)] if case.recipe.own is not None and some else []
        if case.recipe.own is None:
            new = [case.recipe.scaled([n for n in whole if n in names], -1.0)]
            new += [again.scaled([], 1.0, 6), again.scaled(some, 30.0, 7)]
        _add(search, new[: max(lacking, 0)], branch)
    drawn = [case.recipe for case in search.cases if case.recipe.own is None]
    if len(search.all.sites) > 1 and drawn:
        _add(search, [replace(drawn[0], seed=drawn[0].seed + n) for n in range(6, 12)], None)


def _add(search: Search, recipes: list[Recipe], branch: Branch | None) -> None:
    """Runs inputs that are neither known nor extreme, and keeps those that take the branch, or
    others together than all before."""

    def keep(case: Case) -> bool:
        if branch is not None:
            return branch in case.taken
        return all(case.taken != one.taken for one in search.cases)

    known = [case.recipe for case in search.cases]
    made = [Case(r, search.make(r), {}) for r in recipes if r not in known]
    plain = [case for case in made if not case.is_extreme]
    if plain and len(search.cases) < _FEEDS and not search.over():
        search.run([case.recipe for case in plain], keep, feeds=[case.feeds for case in plain])
