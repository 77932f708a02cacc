"""Runs inputs for a search, and keeps those that show something new."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from bridge.check.engines import EndlessError, EngineError, Session
from bridge.check.inputs.draw import Maker
from bridge.check.inputs.probe import ITERATION
from bridge.check.inputs.recipe import Case, Recipe
from bridge.check.inputs.sizes import keys_of, open_sizes, size_limits
from bridge.check.inputs.solver import Variable
from bridge.check.inputs.wanted import Inputs, Wanted
from bridge.check.surgery.sites import Branch, branches_of
from bridge.check.surgery.situations import OVERFLOW
from bridge.check.surgery.watching import all_taken, distances, iterations
from bridge.errors import UsageError, amount
from bridge.neutral.graph import Model, Value, size_of_constants
from bridge.neutral.types import Interval, TensorType, high, low

MANY = 10  # iterations of a Loop
_WORK = 2_000_000
"""Limit of a search in nodes that run, so that a user need not wait long for the check of a large
model. What is counted is the same on each machine, however busy it is."""

_QUICK = 20  # a quick search has so much less
_RUN = 20  # nodes that take as long as the call of an engine
_BYTES = 100_000  # of weights that take as long as a node
_LARGEST_SIZE = 4096  # of a dimension that the search tries
_LATEST = 8  # the latest iteration of a Loop that the search tries
_LARGEST_INPUT = 1 << 18  # elements of an input that the search tries, unless all have more

PER_SIZE = 64
"""By so much a size a run takes longer."""

_WORD = 1 << 31

Keep = Callable[[Case], bool]
"""Says of an input that brings nothing new whether it is kept."""


def always(case: Case) -> bool:
    """Keeps each input."""
    return True


def _longest(value: Any) -> int:
    """The largest size of a tensor in an input."""
    if isinstance(value, list | dict):
        some = value.values() if isinstance(value, dict) else value
        return max(map(_longest, some), default=0)
    return max(getattr(value, "shape", ()), default=0)


def work_of(model: Model) -> float:
    """How long a model runs, in nodes."""
    count = sum(node.op != "Constant" for node in model.graph.walk())
    return _RUN + count + size_of_constants(model.graph) / _BYTES


class Search:
    """What a search for inputs has found. `failing` says why the model refuses inputs that lead to
    a branch. `solved` are recipes that lead to branches, with the variables that decide it, and why
    the model refuses them."""

    def __init__(self, wanted: Wanted) -> None:
        base = wanted.base
        given = {*base.sizes, *base.fills, *base.ranges, *base.values}
        self.all = wanted
        self.base = base
        self.maker = Maker(wanted.model, wanted.demands.counts(given), wanted.twin)
        # The search starts from these sizes and may change them, but not the sizes of `base`.
        self.start = replace(base, sizes=dict(wanted.demands.sizes) | dict(base.sizes))
        self.work = work_of(wanted.model)
        self.limit = _WORK / _QUICK if wanted.quick else _WORK
        self.left = self.limit
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
        self.met: dict[int, int] = {}  # situations, each with its first case
        self.last: Sequence[float] = ()  # how far the last run was from each situation
        self.solved: list[tuple[Recipe, list[Variable], str]] = []
        self.own = 0  # cases that the user gave

    def result(self) -> Inputs:
        """What was found. A branch to which only refused inputs lead counts as failing in the
        model."""
        failing = self.failing.keys() & self.missing
        told = {branch: f"the model fails there: {self.failing[branch]}" for branch in failing}
        self.unreachable |= told
        situations = [one for one in self.all.situations if one.kind != OVERFLOW]  # the last ones
        met = {n: place for n, place in self.met.items() if n < len(situations)}
        largest = max((size for case in self.cases for size in self.open_of(case)), default=0)
        return Inputs(
            tuple(self.cases), self.reached, self.unreachable, dict(self.refused),
            tuple(self.failures), tuple(self.row), self.no_row, self.tried, self.cut_short,
            self.endless, self.iterations, largest, situations, met, frozenset(failing),
        )  # fmt: skip

    def run(
        self,
        recipes: Iterable[Recipe],
        keep: Keep = lambda case: False,
        session: Session | None = None,
        feeds: Sequence[dict[str, Any]] | None = None,
    ) -> list[str]:
        """Runs inputs at once. The answers are why the model refuses each, "" if it does not.

        An input is kept if it takes a new branch, if more inputs are missing, or if `keep` says
        so. Inputs that are too large are refused without a run."""
        made: list[tuple[Recipe, dict[str, Any] | str]] = []
        for place, recipe in enumerate(recipes):
            try:
                made.append((recipe, feeds[place] if feeds else self.make(recipe)))
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
            self.left -= self.work * max(1.0, _longest(feed) / PER_SIZE)
            found = next(results)
            if isinstance(found, EngineError):
                self.refused[str(found)] += 1
                self.endless |= isinstance(found, EndlessError)
            else:
                taken = all_taken(found, self.all.sites) if self.all.sites else frozenset()
                case = Case(recipe, feed, found, taken)
                self._keep(replace(case, far=self._far(case)), keep)
            answers.append(str(found) if isinstance(found, EngineError) else "")
        branches = f", {len(self.reached)} of {self.count} branches" if self.count else ""
        self.all.tell(amount(self.tried, "input") + " tried" + branches)
        return answers

    def variables(self, asked: Mapping[Value, bool]) -> list[Variable]:
        """The sizes and numbers that may be changed in inputs, of which each has whether its
        numbers count, too. Those that the user chose are left out."""
        sizes: dict[str, Variable] = {}
        fills: list[Variable] = []
        for value, valued in asked.items():
            if value.name.startswith(ITERATION):
                fills.append(Variable(value.name, "fills", 0, _LATEST))
                continue
            for key, dim in open_sizes(value).items():
                given = self.base.sizes.get(key, dim)
                if not isinstance(given, int):
                    most = high(given)
                    most = _LARGEST_SIZE if most is None else min(most, _LARGEST_SIZE)
                    # No empty tensor: onnxruntime crashes in some kernels.
                    least = max(low(given), 1)
                    told = tuple(self.hints[""])
                    sizes[key] = Variable(key, "sizes", least, most, 1, least, told)
            kind = (
                value.element.kind if isinstance(value.type, TensorType) and value.element else ""
            )
            if (
                valued
                and value.name not in self.base.fills
                and kind in ("bool", "int", "uint", "float")
            ):
                step = 2.0**-6 if kind == "float" else 1.0
                lowest, highest = (0, 1) if kind == "bool" else (-math.inf, math.inf)
                told = tuple(self.hints.get(value.name, ()))
                fills.append(Variable(value.name, "fills", lowest, highest, step, hints=told))
        return [*fills, *sizes.values()]

    @cached_property
    def limits(self) -> list[int]:
        """See `size_limits`."""
        return size_limits(*filter(None, (self.all.model, self.all.twin)))

    @cached_property
    def hints(self) -> dict[str, list[float]]:
        """Numbers of an input, and of sizes, around those that a file compares with."""
        found = {"": [float(n + step) for n in self.limits for step in (0, -1, 1)]}
        return found | {v.name: [0.0, *uses.marks] for v, uses in self.maker.uses.items()}

    def adds(self, recipe: Recipe, keep: Keep = always) -> bool:
        """Runs one input. The answer is whether it is kept."""
        before = len(self.cases)
        self.run([recipe], keep)
        return len(self.cases) > before

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

    def make(self, recipe: Recipe) -> dict[str, Any]:
        """The inputs of a recipe. UsageError if an input has more than `largest` elements."""
        return self.maker.make(recipe, self.largest)

    def _keep(self, case: Case, keep: Keep) -> None:
        # A new branch may be one whose search was ended: its inputs were refused for other reasons.
        new = case.taken - self.reached.keys()
        counts = iterations(case.outputs, self.all.sites)
        more = {n for n, count in counts.items() if count >= MANY > self.iterations.get(n, 0)}
        often = more and self.agreed(case)
        if not (new or often or self.lacking > 0 or keep(case)):
            return
        self.reached |= dict.fromkeys(sorted(new), len(self.cases))
        self.cases.append(case)
        self.missing -= new
        for branch in new:
            self.unreachable.pop(branch, None)
        for n, count in counts.items():
            self.iterations[n] = max(count, self.iterations.get(n, 0))
        for n in self.shown(case):
            self.met.setdefault(n, len(self.cases) - 1)

    def _far(self, case: Case) -> Sequence[float]:
        """How far an input is from each situation. What has no elements, or zeros alone, shows
        little, and what is rounded is not exact."""
        situations = self.all.situations
        far = distances(case.outputs, situations) if situations and not case.is_empty else ()
        if far and not case.is_on_grid:
            pairs = zip(far, situations, strict=True)
            far = [d or math.inf if one.on_grid else d for d, one in pairs]
        if far and case.is_zeros:
            pairs = zip(far, situations, strict=True)
            far = [math.inf if one.kind in ("equal", "ties") else d for d, one in pairs]
        self.last = far
        return far

    def agreed(self, case: Case) -> bool:
        """Whether engines may agree about what the model gives. They overflow at other places, and
        OpenVINO's hold integers in 32 bits."""
        some = [v for v in case.outputs.values() if isinstance(v, np.ndarray) and v.size]
        whole = [v for v in some if v.dtype.kind in "iu" and v.dtype.itemsize == 8]
        fits = self.maker.alike or all(v.min() >= -_WORD and v.max() < _WORD for v in whole)
        return fits and case.is_finite

    def shown(self, case: Case) -> list[int]:
        """The situations that a case meets and no case before it did."""
        return [n for n, far in enumerate(case.far) if not far and n not in self.met]

    def lengthen(self) -> None:
        """Gives a quick search the work of others: without an input there is nothing to compare."""
        self.left += _WORK - self.limit
        self.limit = _WORK

    def over(self, work: float = 0.0) -> bool:
        """Whether the search is over, once so much work is done."""
        self.left -= work
        self.cut_short |= self.left < 0
        return self.cut_short

    def share(self, work: float) -> int:
        """How many runs of so much work one goal may take."""
        return int(self.limit / 6 / work)

    @property
    def drawn(self) -> list[Case]:
        """The cases that the user did not give."""
        return self.cases[self.own :]

    @property
    def lacking(self) -> int:
        """The number of inputs still to be drawn, 0 if there are calls in a row."""
        return 0 if len(self.row) > 1 else self.all.samples - len(self.drawn)

    def open_of(self, case: Case) -> Iterator[int]:
        """The sizes that a case gives to open dimensions."""
        sizes = self.sizes_of(case)
        return (size for key in self.open if isinstance(size := sizes.get(key), int))

    def sizes_of(self, case: Case) -> dict[str, int | Interval]:
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
