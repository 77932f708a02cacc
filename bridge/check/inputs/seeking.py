"""Seeks inputs for situations that no input has met yet, as far as the budget goes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bridge.check.inputs.recipe import Case, Recipe
from bridge.check.inputs.running import Search
from bridge.check.inputs.solver import Goal, Variable, solve
from bridge.check.surgery.situations import CONDITION, OVERFLOW, Situation
from bridge.neutral.graph import Value

_RUNS = 240  # for all situations of a model
_TRIES = 48  # for one
_AT_NODE = 8  # situations of one node that are sought
_KEPT = 24  # inputs that situations add
_SPOTS = 12  # single elements of an input that may be changed
_STARTS = 3
_FEW = 64  # elements
_WORK = 60_000  # nodes that run, for all situations of a model
_FARTHEST = 1e4  # number that a situation may need; engines round larger ones unlike
_WIDE = 2.0**60

_SINGLY = ("thresholds", "equal", "ties")
"""Kinds of which one may be out of reach where others are not."""

_COUNTED = ("rows", "sides", OVERFLOW)
"""Kinds of which one more, met by chance, is no reason to keep an input."""


def seek_situations(search: Search) -> None:
    """Seeks an input for each situation. Those that few changes may meet come first."""
    left = _RUNS
    floor = search.left - _WORK
    by_node: dict[str, int] = {}
    still: set[str] = set()  # nodes that come no nearer, whatever changes
    kept = len(search.cases)
    order = sorted(range(len(search.all.situations)), key=lambda n: _rank(search.all.situations[n]))
    for number in order:
        one = search.all.situations[number]
        by_node[one.where] = by_node.get(one.where, 0) + 1
        if number in search.met or one.kind.startswith(("rows", OVERFLOW)):
            continue
        done = left <= 0 or search.left < floor or search.endless
        if done or search.over() or len(search.cases) - kept >= _KEPT:
            break
        if one.where not in still and (by_node[one.where] <= _AT_NODE or one.kind in _SINGLY):
            runs, moved = _seek(search, number, min(_TRIES, left))
            left -= runs
            still |= {one.where} if runs and not moved and one.kind not in _SINGLY else set()


def _rank(one: Situation) -> int:
    kinds = [
        CONDITION,
        "windows",
        "sizes",
        "iterations",
        "sides",
        "close",
        "equal",
        "ties",
        "thresholds",
    ]
    return kinds.index(one.kind) if one.kind in kinds else len(kinds)


def _seek(search: Search, number: int, tries: int) -> tuple[int, bool]:
    """Seeks one situation. The answer is how many inputs were run, and whether some came nearer
    than others."""
    one = search.all.situations[number]
    cases = [case for case in search.drawn if case.far and not case.recipe.call]
    cases = sorted(cases, key=lambda case: case.far[number])
    # Few elements are changed one by one, and a small input runs fast.
    near = [case for case in cases if np.isfinite(case.far[number])]
    most = max(_FEW, 4 * min((case.elements for case in near), default=0))
    cases = [case for case in near if case.elements <= most][:_STARTS] or cases[:1]
    if not cases or not np.isfinite(cases[0].far[number]):
        on_grid = [c for c in search.drawn if c.is_on_grid and c.far] if one.on_grid else []
        if not on_grid or not one.on_grid:
            return 0, True
        cases = on_grid[:1]
    runs = 0
    known = [(case.recipe, case.far[number]) for case in search.drawn if case.far]
    seen = set[float]()

    def distances(recipe: Recipe) -> tuple[float, ...]:
        nonlocal runs
        if search.over():
            return ()
        far = next((far for its, far in known if its is recipe), None)
        if far is None:
            runs += 1
            search.last = ()
            search.run([recipe], lambda case: _shows(search, case))
            far = search.last[number] if search.last else np.inf
        seen.add(far)
        return (far,) if np.isfinite(far) else ()

    # What does not change with all elements seldom changes with one of many.
    single = [*_single(search, one, cases[0])]
    starts, most = [case.recipe for case in cases], tries // 3 if single else tries
    for variables in ([*_whole(search, one, cases[0])], single):
        if variables and runs < tries and number not in search.met:
            solve(Goal(distances, [variables], most, short=True), starts)
            if len(seen - {np.inf}) < 2 and cases[0].elements > _FEW:
                break
            most = tries - runs
    return runs, len(seen - {np.inf}) > 1


def _shows(search: Search, case: Case) -> bool:
    """Whether an input meets a situation that no other met, and engines agree about it."""
    new = [search.all.situations[n] for n in search.shown(case)]
    wide = any(one.kind == "ranges" for one in new)
    some = any(not one.kind.startswith(_COUNTED) for one in new)
    kinds = zip(case.far, search.all.situations, strict=True)
    if any(not far and one.kind == OVERFLOW for far, one in kinds):
        return False
    return some and search.agreed(case) and (wide or not case.is_extreme)


def _whole(search: Search, one: Situation, case: Case) -> Iterator[Variable]:
    """Sizes, factors of inputs, and numbers that fill them, which may be changed to meet a
    situation."""
    values = _free(search)
    asked = {values[name]: False for name in sorted(one.sizes) if name in values}
    for variable in search.variables(asked):
        if variable.is_size:
            size = search.sizes_of(case).get(variable.key, variable.of(case.recipe))
            yield replace(variable, usual=float(size) if isinstance(size, int) else variable.usual)
    for value, flat in _numbers(search, one, case):
        number, factor = _variable(search, one, value), case.recipe.scales.get(value.name, 1.0)
        if number.step < 1 and not one.on_grid and flat.size > 1:
            yield replace(number, among="scales", lowest=0.0, usual=factor, hints=())
        yield replace(number, usual=float(np.median(flat.astype(np.float64))))


def _single(search: Search, one: Situation, case: Case) -> Iterator[Variable]:
    """Single elements of inputs that may be changed to meet a situation."""
    for value, flat in _numbers(search, one, case):
        number = _variable(search, one, value)
        for place in range(min(flat.size, _SPOTS) if flat.size > 1 else 0):
            key, usual = (value.name, place), float(flat[place])
            yield replace(
                number, key=key, among="spots", usual=usual, hints=number.hints[: not place]
            )


def _free(search: Search) -> dict[str, Value]:
    return {v.name: v for v in search.maker.values if v.name not in search.base.chosen}


def _numbers(search: Search, one: Situation, case: Case) -> Iterator[tuple[Value, np.ndarray]]:
    """The inputs whose numbers a situation depends on, and their elements in a case."""
    values = _free(search)
    for name in sorted(one.numbers & values.keys()):
        array = case.feeds.get(name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf" or not array.size:
            continue
        if np.isfinite(array.astype(np.float64)).all():
            yield values[name], array.reshape(-1)


def _variable(search: Search, one: Situation, value: Value) -> Variable:
    """The number that fills an input."""
    assert value.element is not None
    is_float = value.element.is_float
    most = _WIDE if one.kind == "ranges" else _FARTHEST if is_float else 2.0**24
    least = -most
    if not is_float:
        least, most = max(least, value.element.bounds[0]), min(most, value.element.bounds[1])
    step = (2.0**-6 if one.on_grid else 2.0**-20) if is_float else 1.0
    hints = tuple(search.hints.get(value.name, ()))[: 12 if one.kind == "thresholds" else 4]
    if one.on_grid:
        hints = (0.5, 0.25, *(hint for hint in hints if hint * 64 == round(hint * 64)))
    return Variable(value.name, "fills", least, most, step, hints=hints)
