"""Seeks inputs that take each branch of every If, and run each Loop never, once, and often.

Inputs are drawn first: small ones, a large one, and ones with special numbers. The search for a
branch starts from the conditions on the way to the branch (`probe`), whose distance is a goal of
the solver; so are sizes that fit, and a number of iterations.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from bridge.check.engines import EndlessError, EngineError, Session
from bridge.check.inputs.calls import States, calls_in_a_row
from bridge.check.inputs.draw import Maker
from bridge.check.inputs.probe import Probe
from bridge.check.inputs.recipe import Case, Numbers, Recipe
from bridge.check.inputs.sizes import SizeBounds, keys_of, misfit, open_sizes
from bridge.check.inputs.solver import Goal, Hints, Variable, sized, solve, variables
from bridge.check.inputs.vary import one_more, varied_like
from bridge.check.inputs.wanted import Inputs, Wanted
from bridge.check.surgery.sites import SEVERAL, Branch, Site, branches_of
from bridge.check.surgery.watching import all_taken, iterations
from bridge.errors import UsageError, amount
from bridge.neutral.types import Interval, TensorType, innermost, low
from bridge.vocabulary import operator

SECONDS = 30.0
"""Limit of the search, so that a user need not wait long for the check of a large model."""

_SHARES = 6  # of that time, one for each goal
_TAKERS = 5  # inputs that each branch is compared with, if the search finds them
_FEEDS = 24  # inputs that are compared, unless more are needed to take all branches
_SEEDS = 6  # seeds for each input that leads to a branch
_ATTEMPTS = 16  # refused inputs that lead to a branch, then the search for it stops
_SOLVED = 4  # the last recipes found for other branches, from which a search starts
_EMPTY = 4  # dimensions, at most, that are tried with a size of 0
_LARGE = 17  # a large size
_MANY = 10  # iterations of a Loop
_TRIES = 60  # runs to make a Loop run so often
_LARGEST_INPUT = 1 << 18  # elements of an input that the search tries, unless all have more
_GROWING = (*range(2, 9), *(16 << k for k in range(9)))  # sizes, until the model takes one
_WINDOW = 64  # the first size that is tried where windows slide over inputs
_AT_ONCE = 20  # inputs, where a model takes few
_SMALL = (2, 3, 1, 0, 4, 5)  # numbers that a model may take where it refuses others
_SIZES = tuple(1 << k for k in (7, 8, 9, 6, 5, 10, 4, 3, 2, 1, 0))
_RELAXED = 6  # sizes that are left out one by one


def search(wanted: Wanted) -> Inputs:
    """The inputs of a check: the user's, drawn ones, and ones that reach further branches."""
    found = _InputSearch(wanted)
    found.take()
    if wanted.samples:
        if wanted.states is not None:
            found.draw_small()
            found.call_in_a_row(wanted.states)
        found.draw()
        found.draw_further()
        found.aim()
        found.repeat()
        found.deepen()
        if not wanted.whole:
            found.empty()
    return found.result()


def fitting_sizes(
    wanted: Wanted, asked: Mapping[str, SizeBounds], keys: Collection[str]
) -> dict[str, int]:
    """Sizes of these dimensions with which a model takes an input, where it takes none of the
    sizes that were `asked`; empty if a search finds no input. If possible, all asked sizes but one
    stay. The base of `wanted` has sizes that the user did not ask for."""
    one_out = [*reversed(list(asked))] if 1 < len(asked) <= _RELAXED else []
    kept = [{key: size for key, size in asked.items() if key != out} for out in one_out]
    for sizes in [*kept, {}] if asked else []:
        base = replace(wanted.base, sizes={**wanted.base.sizes, **wanted.demands.shared(sizes)})
        found = _InputSearch(replace(wanted, base=base, samples=1, sites=(), own=()))
        found.draw()
        for case in found.cases:
            return {key: size for key in keys for size in _size(wanted, case.feeds, key)}
    return {}


def _size(wanted: Wanted, feeds: Mapping[str, Any], key: str) -> list[int]:
    """The size of a dimension in an input, by its key in `Recipe.sizes`: one, or none."""
    for value in wanted.model.graph.inputs:
        array, dims = feeds.get(value.name), innermost(value.type).shape
        for axis, size in enumerate(np.shape(array) if isinstance(array, np.ndarray) else ()):
            symbol = None if dims is None else dims[axis]
            names = (key, wanted.demands.symbols.get(key))
            if f"{value.name}.{axis}" == key or (symbol is not None and symbol in names):
                return [size]
    return []


Keep = Callable[[frozenset[Branch]], bool]
"""Says of an input by the branches that it takes whether it is kept."""


def _always(taken: frozenset[Branch]) -> bool:
    return True


class _InputSearch:
    """See `search`. `failing` says why the model refuses inputs that lead to a branch. `solved` are
    recipes that lead to branches, whether the model takes them or not."""

    def __init__(self, wanted: Wanted) -> None:
        base = wanted.base
        given = {*base.sizes, *base.fills, *base.ranges, *base.values}
        self.all = wanted
        self.base = base
        self.maker = Maker(wanted.model, wanted.demands.counts(given))
        # The search starts from these sizes and may change them, but not the sizes of `base`.
        self.start = replace(base, sizes=dict(wanted.demands.sizes) | dict(base.sizes))
        self.hints = Hints.of(wanted.model.graph.walk()) if wanted.sites else Hints()
        self.end = time.monotonic() + SECONDS
        self.largest = _LARGEST_INPUT
        self.open = {k: dim for value in self.maker.values for k, dim in open_sizes(value).items()}
        self.missing = set(branches_of(wanted.sites))
        self.count = len(self.missing)
        self.cases: list[Case] = []
        self.reached: dict[Branch, int] = {}
        self.unreachable: dict[Branch, str] = {}
        self.failing: dict[Branch, str] = {}
        self.refused = Counter[str]()
        self.failures: list[str] = []
        self.row: list[int] = []
        self.no_row = ""
        self.tried = 0
        self.endless = self.cut_short = False
        self.iterations: dict[int, int] = {}
        self.solved: list[Recipe] = []
        self.slides = any(_slides(node.op) for node in wanted.model.graph.nodes)
        self.own = 0  # cases that the user gave

    def result(self) -> Inputs:
        """What was found. A branch to which only refused inputs lead counts as failing in the
        model."""
        for branch, why in self.failing.items():
            if branch in self.missing:
                self.unreachable[branch] = f"the model fails there: {why}"
        sizes = (size for case in self.cases for size in self._open(case))
        return Inputs(
            tuple(self.cases), self.reached, self.unreachable, dict(self.refused),
            tuple(self.failures), tuple(self.row), self.no_row, self.tried, self.cut_short,
            self.endless, self.iterations, max(sizes, default=0),
        )  # fmt: skip

    # Runs.

    def run(
        self,
        recipes: Iterable[Recipe],
        keep: Keep = lambda taken: False,
        session: Session | None = None,
        feeds: Sequence[dict[str, Any]] | None = None,
    ) -> list[str]:
        """Runs inputs at once. The answers are why the model refuses each, "" if it does not.

        An input is kept if it takes a new branch, if more inputs are missing, or if `keep` says
        so. Inputs that are too large are refused without a run."""
        made: list[tuple[Recipe, dict[str, Any] | str]] = []
        for place, recipe in enumerate(recipes):
            try:
                made.append((recipe, feeds[place] if feeds else self._make(recipe)))
            except UsageError as error:
                made.append((recipe, str(error)))
        some = [feed for _, feed in made if not isinstance(feed, str)]
        results = iter(self._results(session or self.all.session, some))
        answers = []
        for recipe, feed in made:
            if isinstance(feed, str):
                answers.append(feed)
                continue
            self.tried += 1
            found = next(results)
            if isinstance(found, EngineError):
                self.refused[str(found)] += 1
                self.endless |= isinstance(found, EndlessError)
            else:
                self._keep(Case(recipe, feed, found, self._taken(found)), keep)
            answers.append(str(found) if isinstance(found, EngineError) else "")
        branches = f", {len(self.reached)} of {self.count} branches" if self.count else ""
        self.all.tell(amount(self.tried, "input") + " tried" + branches)
        return answers

    def _results(
        self, session: Session, feeds: Sequence[dict[str, Any]]
    ) -> Iterator[dict[str, Any] | EngineError]:
        """The outputs for each input, or why there are none. Where Loops may have no end with some
        inputs, each runs by itself, until one does not end."""
        if not any(site.loop for site in self.all.sites):
            yield from session.run_each(feeds)
            return
        found: dict[str, Any] | EngineError = {}
        for feed in feeds:
            if not (self.endless and isinstance(found, EndlessError)):
                (found,) = session.run_each([feed])
            yield found

    def _make(self, recipe: Recipe) -> dict[str, Any]:
        """The inputs of a recipe. UsageError if an input has more than `largest` elements."""
        return self.maker.make(recipe, self.largest)

    def _taken(self, outputs: Mapping[str, Any]) -> frozenset[Branch]:
        return all_taken(outputs, self.all.sites) if self.all.sites else frozenset()

    def _counts(self, outputs: Mapping[str, Any]) -> dict[int, int]:
        """The most iterations that each Loop ran."""
        return iterations(outputs, self.all.sites)

    def _keep(self, case: Case, keep: Keep) -> None:
        # A new branch may be one whose search was ended: its inputs were refused for other reasons.
        new = case.taken - self.reached.keys()
        counts = self._counts(case.outputs)
        more = {n for n, count in counts.items() if count >= _MANY > self.iterations.get(n, 0)}
        if not (new or more or self._lacking > 0 or keep(case.taken)):
            return
        self.reached |= dict.fromkeys(sorted(new), len(self.cases))
        self.cases.append(case)
        self.missing -= new
        for branch in new:
            self.unreachable.pop(branch, None)
        for n, count in counts.items():
            self.iterations[n] = max(count, self.iterations.get(n, 0))

    def _over(self) -> bool:
        self.cut_short |= time.monotonic() > self.end
        return self.cut_short

    @property
    def _lacking(self) -> int:
        """The number of inputs still to be drawn, 0 if there are calls in a row."""
        return 0 if len(self.row) > 1 else self.all.samples - (len(self.cases) - self.own)

    # Own and drawn inputs.

    def take(self) -> None:
        """Runs the user's inputs."""
        recipes = [replace(self.base, own=one) for one in self.all.own]
        # `make` does not make states that the model holds as variables.
        feeds = [{**r.own.inputs, **self.maker.make(r)} for r in recipes if r.own]
        self.largest = max([self.largest, *map(_most, feeds)])
        if recipes:
            session = self.all.alone or self.all.session
            whys = self.run(recipes, _always, session, feeds)
            for one, why in zip(self.all.own, whys, strict=True):
                if why:
                    self.failures.append(f"the model does not take {one.where}: {why}")
        self.own = len(self.cases)

    def draw(self) -> None:
        """Draws the first inputs. They are small, or larger if the model refuses small ones. If
        windows slide over inputs, larger sizes are tried first."""
        ways = [self.draw_small, self._grow]
        if self.slides:
            ways.reverse()
        for way in (*ways, self._fit, self._guess):
            if len(self.cases) == self.own:
                way()

    def draw_small(self) -> None:
        """Draws inputs with the sizes that operators demand, and with sizes from the seed."""
        count = min(self.all.samples, self.all.budget)
        recipes = [replace(self.start, seed=self.start.seed + more) for more in range(count)]
        feeds = [self.maker.make(recipe) for recipe in recipes]
        self.largest = max([self.largest, *(4 * _most(feed) for feed in feeds)])
        self.run(recipes, feeds=feeds)

    def _grow(self) -> None:
        """Draws inputs with sizes that grow until the model takes one."""
        free = self._growing()
        numbers = sorted(_GROWING, key=lambda number: number < _WINDOW) if self.slides else _GROWING
        for number in numbers if free else ():
            if self._over() or self.run([sized(self.start, free, number)]) == [""]:
                break
        self._more()

    def _growing(self) -> list[Variable]:
        """The open sizes that no operator demands, but for batches, which are the first dimension
        of each input, unless there are no others."""
        shapes = [innermost(value.type).shape or () for value in self.maker.values]
        batches = {str(shape[0]) for shape in shapes if shape}
        batches |= {f"{value.name}.0" for value in self.maker.values}
        symbols = self.all.demands.symbols
        batches |= {symbols[key] for key in batches if key in symbols}
        free = [own for own in self._variables() if own.key not in self.start.sizes]
        return [v for v in free if batches.isdisjoint((v.key, symbols.get(v.key)))] or free

    def _fit(self) -> None:
        """Draws inputs of sizes for which the sizes that operators compute agree."""
        free = self._variables()

        def distances(recipe: Recipe) -> tuple[float, ...]:
            sizes = {key: size for key, size in recipe.sizes.items() if isinstance(size, int)}
            return () if self._over() else (misfit(self.all.model, sizes),)

        start = sized(replace(self.base), free, 2)
        near, _ = solve(Goal(distances, [free]), [start])
        self.largest = max(self.largest, 1 << 22)
        if free and self.run([near]) == [""]:
            self._more()

    def _guess(self) -> None:
        """Draws inputs with integers that are small, or that the model compares with, and with
        other seeds, until the model takes one."""
        whole = variables(dict.fromkeys(self.maker.values, True), self.base)
        longer = sized(self.start, self._growing(), 2 * _WINDOW)
        numbers = dict.fromkeys((*Hints.of(self.all.model.graph.walk()).whole, *_SMALL))
        filled = [
            one.put(start, number)
            for start in (self.start, longer, sized(longer, self._growing(), 8 * _WINDOW))
            for number in numbers
            for one in whole
            if not one.is_size and one.step == 1
        ]
        seeds = range(self.all.samples, self.all.budget)
        drawn = [replace(r, seed=r.seed + n) for r in (self.start, self.base) for n in seeds]
        recipes = [*(recipe for recipe in filled if recipe is not None), *drawn]
        for at in range(0, len(recipes), _AT_ONCE):
            if self._lacking > 0 and not self._over() and not self.endless:
                self.run(recipes[at : at + _AT_ONCE])
        self._more()

    def _variables(self) -> list[Variable]:
        """All open sizes that the user left open, without those that follow from others."""
        free = variables(dict.fromkeys(self.maker.values, False), self.base)
        return [own for own in free if not self._follows(own.key)]

    def _follows(self, key: str) -> bool:
        """Whether a size follows from others."""
        symbol = self.all.demands.symbols.get(key, key)
        return key not in self.base.sizes and symbol in self.maker.following(self.base.sizes)

    def _more(self) -> None:
        """Adds inputs with other seeds like the first one drawn until enough are there."""
        for case in self.cases[self.own : self.own + 1]:
            recipe = case.recipe
            seeds = range(1, self._lacking + 1)
            self.run(replace(recipe, seed=recipe.seed + more) for more in seeds)

    def draw_further(self) -> None:
        """Draws a large input, one with NaN and -0.0 where the model may tell them from others, and
        one with the ends of integer types."""
        case = next((one for one in self.cases[self.own :] if not one.recipe.call), None)
        if case is None:
            return
        recipe = replace(case.recipe, seed=case.recipe.seed + self.all.samples)
        large = replace(recipe, is_large=True)
        free = [v for v in self._variables() if v.key not in self.start.sizes]
        is_small = all(size < _LARGE for size in self._open(case))
        sizes = {k: size for k, size in self._sizes_of(case).items() if not self._follows(k)}
        like = replace(large, sizes=sizes)
        one_each = [v.put(like, _LARGE) for v in reversed(free)] if is_small else []
        uses = {v: u for v, u in self.maker.uses.items() if v.name not in recipe.chosen}
        counted = any(use.name == "trip_count" for u in uses.values() for use in u.all)
        # All sizes at once, but of a large model one alone; each alone if the model refuses that.
        tries = [
            *([] if self.all.whole else [large]),
            *one_each[:_EMPTY],
            *([like] if counted else []),
        ]
        for one in tries if counted or one_each else ():
            if one is not None and self.run([one], _always) == [""]:
                break
        floats = any(u.tells and v.element and v.element.is_float for v, u in uses.items())
        wide = any(
            u.is_moved and v.element and v.element.is_integer and v.element.bits > 8
            for v, u in uses.items()
        )
        # OpenVINO keeps integers of variables in 32 bits.
        wide &= self.all.states is None
        kinds: dict[Numbers, bool] = {"special": floats, "ends": wide}
        self.run([replace(recipe, numbers=kind) for kind, some in kinds.items() if some], _always)

    def _open(self, case: Case) -> Iterator[int]:
        """The sizes that a case gives to open dimensions."""
        sizes = self._sizes_of(case)
        return (size for key in self.open if isinstance(size := sizes.get(key), int))

    def _sizes_of(self, case: Case) -> dict[str, int | Interval]:
        """The sizes that a case gives to open dimensions, by their keys."""
        sizes = dict(case.recipe.sizes)
        for value in self.maker.values:
            array = case.feeds.get(value.name)
            if isinstance(array, np.ndarray) and isinstance(value.type, TensorType):
                by_key = zip(keys_of(value), value.dims, array.shape, strict=False)
                for key, dim, size in by_key:
                    if not isinstance(dim, int):
                        sizes[dim if isinstance(dim, str) else key] = size
        return sizes

    def call_in_a_row(self, states: States) -> None:
        """Makes a first call with empty states, and calls that take the states of the call
        before."""
        session = self.all.session
        alone = self.all.alone or session
        calls, why = calls_in_a_row(states, self.start, self.maker, session)
        if alone is not session:
            more, why = calls_in_a_row(states, self.start, self.maker, alone)
            if len(more) > len(calls):
                calls, session = more, alone
        self.no_row = "" if calls else why
        for recipe, feeds in calls:
            place = len(self.cases)
            if self.run([recipe], _always, session, [feeds]) == [""]:
                self.row.append(place)

    def empty(self) -> None:
        """Tries inputs with one open dimension of size 0, if 0 is allowed. States that are set
        once keep their elements. If no other inputs were found, `samples` of each are tried."""
        states = self.all.states
        once: Set[str] = set() if states is None else states.once
        set_once = {key for v in self.maker.values if v.name in once for key in open_sizes(v)}
        keys = [k for k, dim in self.open.items() if not low(self.base.sizes.get(k, dim))]
        count = 1 if len(self.cases) > self.own else self.all.samples
        recipes = [
            replace(self.start, seed=self.start.seed + n, sizes={**self.start.sizes, key: 0})
            for key in sorted({*keys} - set_once)[:_EMPTY]
            for n in range(count)
        ]
        for recipe in recipes:  # one by one, as an engine may crash
            self.run([recipe], _always)

    # Branches and iterations.

    def aim(self) -> None:
        """Seeks inputs for each branch that no input has reached, from the outermost Ifs inwards.

        The model may refuse an input because of an operator further in, or because of a size that
        the branch does not depend on. A later search may then reach the branch."""
        hopeless: set[Branch] = set()
        for site in self.all.sites:
            open = [outcome for outcome in site.outcomes if (site.index, outcome) in self.missing]
            if not open or self._over() or not hopeless.isdisjoint(site.parents):
                continue
            found = self.all.probes(site)
            if found is None:
                continue
            for outcome in open:
                if (site.index, outcome) in self.missing:  # still
                    solved, why = self._aim(site, outcome, *found)
                    if why:
                        self.failing[site.index, outcome] = why
                    if not solved or (why and self._entered(site)):
                        hopeless.add((site.index, outcome))

    def _entered(self, site: Site) -> bool:
        """Whether an input that the model takes leads to the If."""
        return site.parents[-1] in self.reached if site.parents else bool(self.cases)

    def _aim(self, site: Site, outcome: int, probe: Probe, session: Session) -> tuple[bool, str]:
        """Seeks an input for one outcome. Says whether any input leads there, and why the model
        refuses such inputs."""
        branch = site.index, outcome
        if outcome in probe.settled and not probe.never:
            self._settle(branch, probe.settled[outcome])
        if probe.never or outcome in probe.settled or outcome not in probe.own:
            return False, ""
        end = time.monotonic() + SECONDS / _SHARES

        def distances(recipe: Recipe) -> tuple[float, ...]:
            if self._over() or time.monotonic() > end:
                return ()
            numbers = {
                name: np.array(recipe.fills.get(name, 0), np.int64) for name in probe.iterations
            }
            try:
                return probe.distances(outcome, session.run({**self._make(recipe), **numbers}))
            except (EngineError, UsageError):
                return ()

        known = [*site.parents[-1:], *((site.index, other) for other in site.outcomes)]
        near = [self.cases[self.reached[b]].recipe for b in known if b in self.reached]
        starts = [*near, *(replace(self.start, seed=self.start.seed + k) for k in range(3))]
        wanted = [variables(asked, self.base) for asked in probe.asked(outcome)]
        goal = Goal(distances, wanted, self.hints)
        recipe, far = solve(goal, [*starts, *self.solved[-_SOLVED:]])
        if far:
            if not wanted[-1] and any(distances(self.start)[-1:]):
                what = "the Loop runs as often" if site.loop else "the condition is the same"
                self._settle(branch, f"{what} with all inputs")
            return False, ""
        self.solved.append(recipe)
        like = self._like(recipe, [own for some in wanted for own in some])
        return True, self._refused(r for r in like if r is recipe or not any(distances(r) or (1,)))

    def _refused(self, recipes: Iterator[Recipe]) -> str:
        """The most frequent reason why the model refuses the first of these inputs, "" if the
        model takes one of them."""
        refusals = Counter[str]()
        for recipe in islice(recipes, _ATTEMPTS):
            (why,) = self.run([recipe])
            if not why:
                return ""
            refusals[why] += 1
        return refusals.most_common(1)[0][0] if refusals else ""

    def _like(self, recipe: Recipe, asked: Sequence[Variable]) -> Iterator[Recipe]:
        """The recipe, then the recipe with small numbers, with other seeds, and with other sizes
        than those that were asked for."""
        yield recipe
        for one in asked:
            small = (one.put(recipe, number) for number in _SMALL if not one.is_size)
            yield from (other for other in small if other is not None)
        for seed in range(1, _SEEDS):
            yield replace(recipe, seed=recipe.seed + seed)
        keys = self.open.keys() - self.base.sizes.keys() - {one.key for one in asked}
        for number in _SIZES:
            for key in sorted(keys):
                yield replace(recipe, sizes={**recipe.sizes, key: number})

    def _settle(self, branch: Branch, why: str) -> None:
        """Ends the search for a branch."""
        self.unreachable[branch] = why
        self.missing.discard(branch)

    def repeat(self) -> None:
        """Seeks an input for each Loop that runs it often."""
        for site in self.all.sites:
            place = self.reached.get((site.index, SEVERAL))
            few = place is not None and 0 < self.iterations.get(site.index, 0) < _MANY
            if not few or self._over() or (found := self.all.probes(site)) is None:
                continue
            free = [v for w in found[0].asked(SEVERAL) for v in variables(w, self.base)]
            end = time.monotonic() + SECONDS / _SHARES

            def distances(recipe: Recipe, site: Site = site, end: float = end) -> tuple[float, ...]:
                if self._over() or time.monotonic() > end:
                    return ()
                try:
                    outputs = self.all.session.run(self._make(recipe))
                except (EngineError, UsageError) as error:
                    self.endless |= isinstance(error, EndlessError)
                    return ()
                return (float(max(0, _MANY - self._counts(outputs).get(site.index, 0))),)

            free = [v for v in free if not v.key.startswith("bridge.")]
            if free and place is not None:
                goal = Goal(distances, [free], Hints([12], [12]), _TRIES)
                recipe, far = solve(goal, [self.cases[place].recipe])
                if not far:
                    self.run([recipe])

    def deepen(self) -> None:
        """Adds inputs for branches that few inputs take, and inputs that take branches together
        that no input took together: a single input may hide a difference."""
        for branch in sorted(self.reached):
            case = self.cases[self.reached[branch]]
            takers = sum(branch in one.taken for one in self.cases)
            more = one_more(case) if branch[1] == SEVERAL else []
            varied = varied_like(case, self.maker.values)
            lacking = _TAKERS - takers
            new = [*more, *islice(varied, lacking + 1 if lacking > 0 else 0)]
            self._add(new, frozenset([branch]).issubset)
        drawn = [case.recipe for case in self.cases if case.recipe.own is None]
        if len(self.all.sites) > 1 and drawn:
            seeds = range(_SEEDS, 2 * _SEEDS)
            new = [replace(drawn[0], seed=drawn[0].seed + more) for more in seeds]
            self._add(new, lambda taken: all(taken != case.taken for case in self.cases))

    def _add(self, recipes: Iterable[Recipe], keep: Keep) -> None:
        """Runs inputs, unless there are enough, that are neither known nor extreme."""
        known = [case.recipe for case in self.cases]
        new = [recipe for recipe in recipes if recipe not in known]
        made = [Case(recipe, self._make(recipe), {}) for recipe in new]
        plain = [case for case in made if not case.is_extreme]
        if plain and len(self.cases) < _FEEDS and not self._over():
            self.run([case.recipe for case in plain], keep, feeds=[case.feeds for case in plain])


def _slides(op: str) -> bool:
    """Whether an operator slides a window over its input."""
    row = operator(op)
    return row is not None and "strides" in row.attributes


def _most(value: Any) -> int:
    """The number of elements of the largest tensor in an input."""
    if isinstance(value, list | dict):
        return max(map(_most, value.values() if isinstance(value, dict) else value), default=0)
    return getattr(value, "size", 0)
