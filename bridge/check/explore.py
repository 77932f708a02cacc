"""Seeks inputs that take each branch of every If, and run each Loop never, once and several times.

The search for a branch starts from the conditions on the way to the branch (`probe`, `solve`).
Random inputs follow for branches that this search does not reach, as in a fuzzer. An input that
reached a new branch is changed further, with sizes and numbers from the model's constants.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from bridge.check.aside import why_aside
from bridge.check.calls import States, calls_in_a_row
from bridge.check.computed_sizes import fitting_sizes
from bridge.check.demands import counts_of, demanded
from bridge.check.engines import EndlessError, EngineError, Session
from bridge.check.inputs import Inputs, Recipe, open_sizes
from bridge.check.instrument import SEVERAL, Branch, Site, all_taken, branches_of
from bridge.check.own_inputs import InputSet
from bridge.check.probe import Probe
from bridge.check.solve import LARGEST_SIZE, solve, variables
from bridge.errors import UsageError, amount
from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Model, Value
from bridge.neutral.types import TensorType, innermost, low
from bridge.vocabulary import operator

Probes = Callable[[Site], tuple[Probe, Session] | None]
"""Gives the loaded probe of a site, None if there is no probe or no engine loads it."""

SECONDS = 30.0
"""Limit of the search, so that a user need not wait long for the check of a large model."""

_SHARES = 6  # of that time: one for each outcome's search, one for random runs in vain
_PATIENCE = 80  # random runs without anything new, then the random search stops
_TAKERS = 5  # inputs that each branch is compared with, if the search finds them
_FEEDS = 24  # inputs that are compared, unless more are needed to take all branches
_SEEDS = 6  # seeds for each input that leads to a branch
_ATTEMPTS = 16  # refused inputs that lead to a branch, then the search for it stops
_USUAL_SIZES = (64, 512, 16, 128, 4096, 8, 32, 224, 256, 1024, 16000)
_SOLVED = 4  # the last recipes found for other branches, from which a search starts
_EMPTY = 4  # dimensions, at most, that are tried with a size of 0
_LARGEST_INPUT = 1 << 18  # elements of an input that the search tries, unless all have more


@dataclass
class Exploration:
    """The results of a search.

    `feeds` are inputs that the model takes, `recipes` their recipes, `outputs` what the session
    gave for them, `taken` the branches that each input takes. `reached` has the number of each
    branch's first input. `refused` counts the engine's messages for inputs that the model refused.
    `unreachable` says why no input takes a branch, if the reason is known. `failures` say which of
    the user's inputs the model refused, and why. `row` has the numbers of the inputs that are calls
    in a row, `no_row` says why there are none. `runs` is the number of inputs that were tried.
    `cut_short` is set if the search ran out of time, `endless` if a run took too long and was
    stopped.
    """

    feeds: list[dict[str, Any]] = field(default_factory=list)
    recipes: list[Recipe] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    taken: list[frozenset[Branch]] = field(default_factory=list)
    reached: dict[Branch, int] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    unreachable: dict[Branch, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    no_row: str = ""
    runs: int = 0
    cut_short: bool = False
    endless: bool = False


def explore(
    model: Model,
    session: Session,
    sites: Sequence[Site],
    base: Recipe,
    samples: int,
    budget: int,
    probes: Probes,
    tell: Callable[[str], None] = lambda text: None,
    own: Sequence[InputSet] = (),
    states: States | None = None,
    alone: Session | None = None,
    whole: bool = False,
) -> Exploration:
    """Find `samples` inputs that the model takes, and more that reach further branches or have
    empty tensors.

    The user's inputs `own` come first. If `samples` is 0, only they are tried. A model with
    `states` gets calls in a row. If `alone` runs a longer row than `session`, that row is taken.
    With `whole`, all inputs have elements.

    `model` is the graph without additions. `session` runs the graph with further outputs for the
    taken branches (see `instrument`). The random search stops when `budget` inputs were tried.
    `tell` is called with the progress.
    """
    search = _BranchSearch(model, session, sites, base, samples, budget, tell)
    search.take(own, alone or session)
    if samples:
        if states is not None:
            search.draw_small()
            search.call_in_a_row(states, alone or session)
        search.draw()
        search.aim(probes)
        if not whole:
            search.empty(frozenset() if states is None else states.once)
        search.wander()
        search.deepen()
    search.conclude()
    return search.result


@dataclass
class _BranchSearch:
    """See `explore`. `failing` says why the model refuses inputs that lead to a branch. `solved`
    are recipes that lead to branches, whether the model takes them or not. `own` is the number of
    inputs that the user gave."""

    model: Model
    session: Session
    sites: Sequence[Site]
    base: Recipe
    samples: int
    budget: int
    tell: Callable[[str], None]
    largest: int = _LARGEST_INPUT
    result: Exploration = field(default_factory=Exploration)
    failing: dict[Branch, str] = field(default_factory=dict)
    solved: list[Recipe] = field(default_factory=list)
    own: int = 0

    def __post_init__(self) -> None:
        base = self.base
        given = {*base.sizes, *base.fills, *base.ranges, *base.values}
        self.inputs = Inputs(self.model, counts_of(self.model, given))
        # The search starts from these sizes and may change them, but not the sizes of `base`.
        self.start = replace(self.base, sizes=demanded(self.model) | dict(self.base.sizes))
        self.numbers = _Numbers.of(self.model)
        self.end = time.monotonic() + SECONDS
        self.wanted = set(branches_of(self.sites))
        self.count = len(self.wanted)

    def take(self, own: Sequence[InputSet], session: Session) -> None:
        """Runs the user's inputs in `session`."""
        for one in own:
            recipe = replace(self.base, own=one)
            # `make` does not make states that the model holds as variables.
            feeds = {**one.inputs, **self.inputs.make(recipe)}
            self.largest = max(self.largest, _size(list(feeds.values())))
            why = self._run(recipe, feeds, keep=True, session=session)
            if why is not None:
                self.result.failures.append(f"the model does not take {one.where}: {why}")
        self.own = len(self.result.feeds)

    @property
    def _missing(self) -> int:
        """The number of inputs still to be drawn, 0 if there are calls in a row."""
        return 0 if len(self.result.row) > 1 else self.samples - (len(self.result.feeds) - self.own)

    def draw(self) -> None:
        """Draws the first inputs. They are small, or of a usual size if the model refuses small
        ones. If windows slide over inputs, the usual sizes are tried first."""
        ways = [self.draw_small, self._draw_usual]
        if any(_slides(node.op) for node in self.model.graph.nodes):
            ways.reverse()
        for way in (*ways, self._draw_fitting):
            if len(self.result.feeds) == self.own:
                way()

    def draw_small(self) -> None:
        """Draws inputs with the sizes that operators demand, and with sizes from the seed."""
        for attempt in range(min(self.samples, self.budget)):
            recipe = replace(self.start, seed=self.start.seed + attempt)
            feeds = self.inputs.make(recipe)
            self.largest = max(self.largest, 4 * _size(list(feeds.values())))
            self._run(recipe, feeds)

    def _draw_usual(self) -> None:
        """Draws inputs of the first usual size that the model takes. All open dimensions get this
        size, except batches: the first dimension of each input."""
        shapes = [innermost(value.type).shape or () for value in self.inputs.values]
        batches = {shape[0] for shape in shapes if shape}
        keys = [
            key
            for value in self.inputs.values
            for key in open_sizes(value)
            if key not in batches and key != f"{value.name}.0"
        ]
        for size in _USUAL_SIZES if keys else ():
            recipe = replace(self.start, sizes=dict.fromkeys(keys, size) | dict(self.start.sizes))
            try:
                if self._over() or self._run(recipe, self._feeds(recipe)) is None:
                    break
            except UsageError:  # too large
                continue
        for recipe in self.result.recipes[self.own : self.own + 1]:
            self._more_like(recipe)

    def _draw_fitting(self) -> None:
        """Draws inputs of sizes for which the sizes that operators compute agree."""
        sizes = fitting_sizes(self.model, self.inputs.values, self.start.sizes, self._over)
        if sizes == self.start.sizes:
            return
        recipe = replace(self.start, sizes=sizes)
        try:
            feeds = self.inputs.make(recipe)
        except UsageError:  # too large
            return
        self.largest = max(self.largest, _size(list(feeds.values())))
        if self._run(recipe, feeds) is None:
            self._more_like(recipe)

    def call_in_a_row(self, states: States, alone: Session) -> None:
        """Makes a first call with empty states, and calls that take the states of the call
        before."""
        calls, why = calls_in_a_row(states, self.start, self.inputs, self.session)
        runs = self.session
        if alone is not runs:
            more, why = calls_in_a_row(states, self.start, self.inputs, alone)
            if len(more) > len(calls):
                calls, runs = more, alone
        self.result.no_row = "" if calls else why
        for recipe, feeds in calls:
            place = len(self.result.feeds)
            if self._run(recipe, feeds, keep=True, session=runs) is None:
                self.result.row.append(place)

    def _more_like(self, recipe: Recipe) -> None:
        """Adds inputs with other seeds until enough are there. Extreme inputs are left out."""
        for more in range(1, self.samples):
            again = replace(recipe, seed=recipe.seed + more)
            if self._missing > 0 and not self._over():
                feeds = self._feeds(again)
                if not why_aside(feeds, self.base.chosen):
                    self._run(again, feeds)

    def aim(self, probes: Probes) -> None:
        """Seeks inputs for each branch that no input has reached, from the outermost Ifs inwards.

        The model may refuse an input because of an operator further in, or because of a size that
        the branch does not depend on. A later search may then reach the branch."""
        hopeless: set[Branch] = set()
        for site in self.sites:
            open = [outcome for outcome in site.outcomes if (site.index, outcome) in self.wanted]
            if not open or self._over() or not hopeless.isdisjoint(site.parents):
                continue
            found = probes(site)
            if found is None:
                continue
            for outcome in open:
                if (site.index, outcome) in self.wanted:  # still
                    solved, why = self._aim(site, outcome, *found)
                    if why:
                        self.failing[site.index, outcome] = why
                    if not solved or (why and self._entered(site)):
                        hopeless.add((site.index, outcome))

    def _entered(self, site: Site) -> bool:
        """Whether an input that the model takes leads to the If."""
        reached = self.result.reached
        return site.parents[-1] in reached if site.parents else bool(self.result.feeds)

    def _aim(self, site: Site, outcome: int, probe: Probe, session: Session) -> tuple[bool, str]:
        """Seeks an input for one outcome. Says whether any input leads there, and why the model
        refuses such inputs."""
        if probe.never:
            return False, ""
        if outcome in probe.settled:
            self._settle((site.index, outcome), probe.settled[outcome])
            return False, ""
        if outcome not in probe.own:
            return False, ""

        end = time.monotonic() + SECONDS / _SHARES

        def distances(recipe: Recipe) -> tuple[float, ...]:
            if self._over() or time.monotonic() > end:
                return ()
            numbers = {
                name: np.array(recipe.fills.get(name, 0), np.int64) for name in probe.iterations
            }
            try:
                feeds = self._feeds(recipe)
                return probe.distances(outcome, session.run({**feeds, **numbers}))
            except (EngineError, UsageError):
                return ()

        result = self.result
        known = [*site.parents[-1:], *((site.index, other) for other in site.outcomes)]
        near = [result.recipes[result.reached[b]] for b in known if b in result.reached]
        starts = [*near, *(replace(self.start, seed=self.start.seed + k) for k in range(3))]
        starts += self.solved[-_SOLVED:]
        *way, own = probe.asked(outcome)
        wanted = [variables(asked, self.base) for asked in (*way, own)]
        recipe = solve(starts, wanted, self.numbers.near_compared, distances)
        if recipe is None:
            if not own and any(distances(self.start)[-1:]):
                what = "the Loop runs as often" if site.loop else "the condition is the same"
                self._settle((site.index, outcome), f"{what} with all inputs")
            return False, ""
        self.solved.append(recipe)
        asked = {own.key for some in wanted for own in some if own.is_size}
        like = self._like(recipe, asked)
        leading = (r for r in like if r is recipe or not any(distances(r) or (1,)))
        return True, self._refused(leading)

    def _refused(self, recipes: Iterable[Recipe]) -> str:
        """The most frequent reason why the model refuses the first of these inputs, "" if the
        model takes one of them."""
        refusals = Counter[str]()
        for recipe in recipes:
            try:
                why = self._run(recipe, self._feeds(recipe))
            except UsageError:
                continue
            if why is None:
                return ""
            refusals[why] += 1
            if refusals.total() == _ATTEMPTS:
                break
        return refusals.most_common(1)[0][0] if refusals else ""

    def _like(self, recipe: Recipe, asked: Set[str]) -> Iterator[Recipe]:
        """The recipe, then the recipe with other seeds, then with other sizes. The sizes with keys
        in `asked` stay."""
        yield recipe
        for seed in range(1, _SEEDS):
            yield replace(recipe, seed=recipe.seed + seed)
        keys = {key for value in self.inputs.values for key in open_sizes(value)}
        for number in (1 << k for k in (7, 8, 9, 6, 5, 10, 4, 3, 2, 1, 0)):
            for key in sorted(keys - self.base.sizes.keys() - asked):
                yield replace(recipe, sizes={**recipe.sizes, key: number})

    def _settle(self, branch: Branch, why: str) -> None:
        """Ends the search for a branch."""
        self.result.unreachable[branch] = why
        self.wanted.discard(branch)

    def empty(self, once: Set[str]) -> None:
        """Tries inputs with one open dimension of size 0, if 0 is allowed. States that are set
        `once` keep their elements. If no other inputs were found, `samples` of each are tried."""
        sizes = {key: dim for value in self.inputs.values for key, dim in open_sizes(value).items()}
        set_once = {key for v in self.inputs.values if v.name in once for key in open_sizes(v)}
        open = [key for key, dim in sizes.items() if not low(self.base.sizes.get(key, dim))]
        open = [key for key in open if key not in set_once]
        count = 1 if len(self.result.feeds) > self.own else self.samples
        for key in sorted(open)[:_EMPTY]:
            for more in range(count):
                seed = self.start.seed + more
                recipe = replace(self.start, seed=seed, sizes={**self.start.sizes, key: 0})
                self._run(recipe, self.inputs.make(recipe), keep=True)

    def wander(self) -> None:
        """Tries random inputs for the branches that are still missing."""
        settled = self.result.unreachable.keys()
        within = {s.index for s in self.sites if not settled.isdisjoint(s.parents)}
        self.wanted = {branch for branch in self.wanted if branch[0] not in within}
        rng = np.random.default_rng(self.base.seed)
        # No empty inputs here: they may crash the engine.
        drawn = [recipe for recipe in self.result.recipes if recipe.own is None]
        whole = [recipe for recipe in drawn if 0 not in recipe.sizes.values()]
        found = [*whole, *_beginnings(self.start, self.model, self.numbers)]
        for recipe in drawn:
            self._more_like(recipe)
        idle, end = 0, time.monotonic() + SECONDS / _SHARES
        while not self._over() and self.result.runs < self.budget:
            in_vain = not self.wanted or idle > _PATIENCE or time.monotonic() > end
            if self._missing <= 0 and in_vain:
                break
            recipe = found[int(rng.integers(len(found)))]
            for _ in range(int(rng.integers(1, 5))):
                recipe = _changed(recipe, self.model, self.base, self.numbers, rng)
            idle += 1
            try:
                feeds = self._feeds(recipe)
            except UsageError:  # too large
                continue
            if self._run(recipe, feeds) is None and self.result.recipes[-1:] == [recipe]:
                found.append(recipe)
                idle, end = 0, time.monotonic() + SECONDS / _SHARES

    def deepen(self) -> None:
        """Adds inputs for branches that few inputs take: a single input may hide a difference."""
        result = self.result
        takers = Counter(branch for taken in result.taken for branch in taken)
        for branch in sorted(result.reached):
            place = result.reached[branch]
            recipe = result.recipes[place]
            if 0 in recipe.sizes.values():
                continue
            feeds = result.feeds[place]
            more = _one_more(recipe, feeds) if branch[1] == SEVERAL else ()
            for again in chain(more, _varied(recipe, feeds, self.inputs.values)):
                enough = takers[branch] >= _TAKERS and again not in more
                if enough or len(result.feeds) >= _FEEDS or self._over():
                    break
                feeds = self._feeds(again)
                if again in result.recipes or why_aside(feeds, self.base.chosen):
                    continue
                count = len(result.feeds)
                self._run(again, feeds, wanted=branch)
                if len(result.feeds) > count:
                    takers.update(result.taken[-1])
        self._combine()

    def _combine(self) -> None:
        """Adds inputs that take branches together that no input took together. One branch may
        hide a difference of another."""
        result = self.result
        drawn = [recipe for recipe in result.recipes if recipe.own is None]
        seeds = range(_SEEDS, 2 * _SEEDS) if len(self.sites) > 1 and drawn else ()
        for more in seeds:
            if len(result.feeds) >= _FEEDS or self._over():
                break
            recipe = replace(drawn[0], seed=drawn[0].seed + more)
            feeds = self._feeds(recipe)
            if not why_aside(feeds, self.base.chosen):
                self._run(recipe, feeds, together=True)

    def conclude(self) -> None:
        """A branch that random inputs did not reach either counts as failing in the model."""
        for place, why in self.failing.items():
            if place in self.wanted:
                self._settle(place, f"the model fails there: {why}")

    def _feeds(self, recipe: Recipe) -> dict[str, Any]:
        """The inputs of a recipe. UsageError if an input has more than `largest` elements."""
        return self.inputs.make(recipe, self.largest)

    def _run(
        self,
        recipe: Recipe,
        feeds: dict[str, Any],
        keep: bool = False,
        wanted: Branch | None = None,
        together: bool = False,
        session: Session | None = None,
    ) -> str | None:
        """Runs the model. The answer is why the model refuses the input, None if it does not.

        An input is kept if it takes a new branch or the branch `wanted`, if more inputs are
        missing, or if `keep` says so. With `together`, an input is kept if no input took the
        same set of branches."""
        result = self.result
        result.runs += 1
        self.tell(
            f"{amount(result.runs, 'input')} tried"
            + (f", {len(result.reached)} of {self.count} branches" if self.sites else "")
        )
        try:
            outputs = (session or self.session).run(feeds)
        except EngineError as error:
            result.refused[str(error)] += 1
            result.endless |= isinstance(error, EndlessError)
            return str(error)
        taken = all_taken(outputs, self.sites) if self.sites else frozenset[Branch]()
        # A new branch may be one whose search was ended: its inputs were refused for other reasons.
        new = taken - result.reached.keys()
        keep = keep or (together and taken not in result.taken)
        if keep or new or wanted in taken or self._missing > 0:
            result.reached |= dict.fromkeys(sorted(new), len(result.feeds))
            result.feeds.append(feeds)
            result.recipes.append(recipe)
            result.outputs.append(outputs)
            result.taken.append(taken)
            self.wanted -= new
            for branch in new:
                result.unreachable.pop(branch, None)
        return None

    def _over(self) -> bool:
        if time.monotonic() > self.end:
            self.result.cut_short = True
        return self.result.cut_short


def _one_more(recipe: Recipe, feeds: Mapping[str, Any]) -> list[Recipe]:
    """The recipe with single integers that are greater by one, if there are any. If they count a
    Loop, an odd number of iterations becomes an even one: states may change places in each."""
    alone = {n: x for n, x in feeds.items() if getattr(x, "size", 0) == 1 and x.dtype.kind in "iu"}
    if not alone or recipe.own is not None:
        return []
    return [replace(recipe, fills={**recipe.fills, **{n: x.item() + 1 for n, x in alone.items()}})]


def _varied(recipe: Recipe, feeds: Mapping[str, Any], inputs: Sequence[Value]) -> Iterator[Recipe]:
    """The recipe with smaller and larger numbers, with the other sign, and with other seeds. A
    single integer stays the same with other seeds: it may choose the branch. Integers change only
    their sign, because engines hold large integers in 32 bits."""
    free = {
        v.name: v.element for v in inputs if v.element is not None and v.name not in recipe.fills
    }
    floats = [name for name, element in free.items() if element.is_float]
    integers = [name for name, element in free.items() if element.kind == "int"]
    alone = {n: x for n, x in feeds.items() if n in free and getattr(x, "size", 0) == 1}
    held = {name: float(x.item()) for name, x in alone.items() if x.dtype.kind in "biu"}
    for more, factor in ((0, -1.0), (0, 1e-3), (0, -30.0), (6, 1.0), (7, 30.0), (8, 300.0)):
        names = integers if factor == -1.0 else floats
        scales = {} if factor == 1.0 else dict.fromkeys(names, factor)
        if recipe.own is not None and not scales:
            continue
        fills = {**recipe.fills, **held} if more else recipe.fills
        yield replace(
            recipe, seed=recipe.seed + more, fills=fills, scales={**recipe.scales, **scales}
        )


def _slides(op: str) -> bool:
    """Whether an operator slides a window over its input."""
    row = operator(op)
    return row is not None and "strides" in row.attributes


def _size(value: Any) -> int:
    """The number of elements of the largest tensor in an input."""
    if isinstance(value, list):
        return max(map(_size, value), default=0)
    return getattr(value, "size", 0)


@dataclass(frozen=True)
class _Numbers:
    """Numbers from the model's small constants: numbers in comparisons, and all numbers."""

    compared: Sequence[float]
    all: Sequence[float]

    @classmethod
    def of(cls, model: Model) -> _Numbers:
        every, compared = {0.0}, {0.0}
        for node in model.graph.walk():
            for value in node.inputs:
                tensor = value.constant if value is not None else None
                if tensor is None or tensor.size > 8 or tensor.element.kind not in _NUMERIC:
                    continue
                numbers = [float(x) for x in tensor.array().reshape(-1) if np.isfinite(float(x))]
                every.update(numbers)
                if node.op in OPPOSITES:
                    compared.update(numbers)
        return cls(sorted(compared), sorted(every))

    @property
    def near_compared(self) -> list[float]:
        """The numbers that the model compares with, and their neighbours."""
        near = {number + step for number in self.compared for step in (0.0, -1.0, 1.0)}
        return sorted(near, key=lambda number: (abs(number), number))

    def draw(self, rng: np.random.Generator) -> float:
        """One of the numbers, or a neighbour of it. Half the time the number is from a
        comparison."""
        some = self.compared if rng.integers(2) else self.all
        return some[int(rng.integers(len(some)))] + float(rng.choice([0, 0, -1, 1]))


_NUMERIC = frozenset({"int", "uint", "float"})


def _beginnings(base: Recipe, model: Model, numbers: _Numbers) -> list[Recipe]:
    """`base`, and `base` with an integer input at a number that the model compares with."""
    integers = [
        v.name
        for v in model.graph.inputs
        if v.element is not None and v.element.kind in ("int", "uint", "bool")
    ]
    fills = [
        {name: number} for name in integers for number in numbers.compared if name not in base.fills
    ]
    return [base, *(replace(base, fills={**base.fills, **fill}) for fill in fills[:_BEGINNINGS])]


_BEGINNINGS = 32


def _changed(
    recipe: Recipe, model: Model, base: Recipe, numbers: _Numbers, rng: np.random.Generator
) -> Recipe:
    """A recipe that differs from `recipe` in one choice. Sizes and numbers of `base` stay."""
    inputs = [v for v in model.graph.inputs if isinstance(v.type, TensorType)]
    free = sorted({key for value in inputs for key in open_sizes(value)} - set(base.sizes))
    kinds = [
        "seed",
        *(["size"] * 2 if free else []),
        *(["fill", "fill", "scale"] if inputs else []),
    ]
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind == "seed":
        return replace(recipe, seed=int(rng.integers(1 << 31)))
    if kind == "size":
        some = (numbers.draw(rng), float(rng.integers(1, 9)), 2 ** rng.uniform(0, 11))
        # No empty tensor: onnxruntime crashes in some kernels.
        size = min(max(int(some[int(rng.integers(3))]), 1), LARGEST_SIZE)
        return replace(recipe, sizes={**recipe.sizes, free[int(rng.integers(len(free)))]: size})
    value = inputs[int(rng.integers(len(inputs)))]
    if value.element is None or value.element.name == "string" or value.name in base.fills:
        return recipe
    if kind == "fill":
        return replace(recipe, fills={**recipe.fills, value.name: numbers.draw(rng)})
    factor = float(rng.choice([-1.0, 0.01, 10.0, 1000.0]))
    fills = {name: x for name, x in recipe.fills.items() if name != value.name}
    return replace(recipe, fills=fills, scales={**recipe.scales, value.name: factor})
