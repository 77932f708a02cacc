"""The verdict: a pure function of arrays.

An output of a version is equal to the original's by the rule of `compare`, or it differs. One thing
excuses a difference: that it is within the original's own noise, which is measured on the original
alone. Nothing else does. What was not compared is told.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridge.check.compare import Difference, Results, Tolerances, arrays, compare, differences
from bridge.check.engines import EngineError
from bridge.check.runs import Run, Runs

EQUAL, NOISE, UNSHOWN, RANDOM, DIFFERENT = "equal", "noise", "unshown", "random", "different"

_LARGE = 0.05
"""The largest `level` of noise that an input may have for an output, or it shows nothing of it."""

GIVEN = "original, held to the outputs that were given"
"""The label of the original, compared with outputs that a user gave."""


@dataclass(frozen=True)
class Comparison:
    """How one output of one run compares. `how` says how the version ran, "" for inputs in order;
    `state` is equal, within the original's noise, not shown because that is large, random, or
    different. `noise` is its level."""

    label: str
    output: str
    case: int
    how: str
    state: str
    difference: Difference
    noise: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it does not make the verdict different."""
        return self.state != DIFFERENT

    @property
    def badness(self) -> tuple[Any, ...]:
        """A key that sorts comparisons, the worst last."""
        order = (UNSHOWN, EQUAL, RANDOM, NOISE, DIFFERENT)
        return (order.index(self.state), *self.difference.badness)


@dataclass(frozen=True)
class Verdict:
    """All comparisons and failed runs. `not_shown` are sentences about outputs of which nothing
    was compared. `dark` are outputs of which no input shows anything because of noise."""

    comparisons: Sequence[Comparison] = ()
    failed: Sequence[Run] = ()
    not_shown: Sequence[str] = ()
    dark: Sequence[str] = ()

    @property
    def different(self) -> bool:
        """Whether any output differs."""
        return not all(one.ok for one in self.comparisons)

    @property
    def results(self) -> list[Comparison]:
        """The worst comparison of each output of each version."""
        worst: dict[tuple[str, str], Comparison] = {}
        for one in self.comparisons:
            key = one.label, one.output
            if key not in worst or one.badness > worst[key].badness:
                worst[key] = one
        return [*worst.values()]

    def compared(self, output: str) -> int:
        """With how many inputs an output was compared, of the version with the fewest."""
        found: dict[str, set[int]] = {}
        for one in self.comparisons:
            if one.output == output and one.state != UNSHOWN:
                found.setdefault(one.label, set()).add(one.case)
        return min(map(len, found.values()), default=0)

    @property
    def wrong(self) -> set[int]:
        """The inputs with which an output differs."""
        return {one.case for one in self.comparisons if not one.ok}

    @property
    def noise(self) -> Comparison | None:
        """The largest difference within the original's noise, as a share of its output's range."""
        some = (one for one in self.comparisons if one.state == NOISE)
        return max(some, key=lambda one: one.difference.of_range, default=None)


Explains = Callable[[int, Sequence[Results]], Mapping[str, float] | None]
"""The level of the noise of each output, if the results of one input, each with the outputs that
differ, are within it."""


def conclude(
    runs: Runs,
    tolerances: Tolerances,
    explains: Explains,
    given: Mapping[int, Results],
    apart: Mapping[int, str] | None = None,
    light: Set[int] = frozenset(),
) -> Verdict:
    """The verdict on all runs. `explains` is asked where a run differs, and not for outputs whose
    tolerance the user chose. `given` are outputs that the user gave with an input. `apart` are
    inputs that no user would give, with what is odd about them: a difference with these alone is
    told, and does not count. `light` are inputs that show little: an output that no other input
    shows is not shown."""
    comparisons: list[Comparison] = []
    failed: list[Run] = []
    lost: dict[str, set[int]] = {}
    apart = apart or {}
    for run in runs.runs:
        if isinstance(run.outcome, EngineError):
            if run.case in apart:
                lost.setdefault(f"{run.label} fails with {apart[run.case]}", set()).add(run.case)
            else:
                failed.append(run)
            continue
        found = _compared(run, runs, tolerances)
        if run.case in apart and not all(one.ok for one in found):
            lost.setdefault(f"{run.label} differs with {apart[run.case]}", set()).add(run.case)
        else:
            comparisons += found
    comparisons = _excused(comparisons, runs, tolerances, explains)
    for case, outputs in given.items():
        expected = runs.expected[case]
        for name, value in runs.settled(case, outputs).items():
            if name in expected and not runs.is_open(case, name):
                how = compare(value, expected[name], *tolerances.of(name, value))
                state = EQUAL if how.ok else DIFFERENT
                comparisons.append(Comparison(GIVEN, name, case, "", state, how))
    noisy = {one.output: one for one in comparisons if one.state == UNSHOWN}
    dark = [
        name
        for name in noisy
        if all(
            one.state == UNSHOWN or one.case in light or not one.difference.size
            for one in comparisons
            if (one.output, one.label) == (name, noisy[name].label)
        )
    ]
    of = len({run.case for run in runs.runs})
    odd = [f"{said} ({len(cases)} of {of} inputs)" for said, cases in lost.items()]
    told = [*_not_shown(runs, comparisons), *_of_noise(comparisons, dark), *odd]
    return Verdict(comparisons, failed, told, dark)


def _of_noise(comparisons: Sequence[Comparison], dark: Sequence[str]) -> list[str]:
    """What is said of outputs whose noise is large with some inputs, or with all."""
    told = []
    for name in dict.fromkeys(one.output for one in comparisons if one.state == UNSHOWN):
        own = [one for one in comparisons if one.output == name]
        some = [one for one in own if one.state == UNSHOWN]
        worst = max(one.noise for one in some)
        said = f"the original's noise is {100 * worst:.2g} %" if worst < np.inf else "all is noise"
        cases, every = (len({one.case for one in found}) for found in (some, own))
        told.append(
            f"'{name}' is not shown: {said}"
            if name in dark
            else f"'{name}' is not shown by {cases} of {every} inputs: {said}"
        )
    return told


def _compared(run: Run, runs: Runs, tolerances: Tolerances) -> list[Comparison]:
    """How the outputs of one run compare. Of random ones type and shape alone."""
    assert not isinstance(run.outcome, EngineError)
    found = differences(runs.expected[run.case], run.outcome, tolerances)
    return [
        Comparison(
            run.label, name, run.case, run.how, _state(runs.is_open(run.case, name), how), how
        )
        for name, how in found.items()
    ]


def _state(is_random: bool, found: Difference) -> str:
    if is_random and not found.problem:
        return RANDOM
    return EQUAL if found.ok else DIFFERENT


def _excused(
    comparisons: list[Comparison], runs: Runs, tolerances: Tolerances, explains: Explains
) -> list[Comparison]:
    """The comparisons. Those that are within the noise, with all outputs of their run, are so."""
    outcomes = {(run.label, run.case, run.how): run.outcome for run in runs.runs}
    wrong: dict[int, dict[tuple[str, int, str], dict[str, Any]]] = {}
    for one in comparisons:
        if not one.ok:
            run = one.label, one.case, one.how
            outcome = outcomes[run]
            assert not isinstance(outcome, EngineError)
            wrong.setdefault(one.case, {}).setdefault(run, {})[one.output] = outcome[one.output]
    within: dict[tuple[str, int, str], Mapping[str, float]] = {}
    for case, some in wrong.items():
        decided = any(tolerances.decides(name) for results in some.values() for name in results)
        levels = None if decided else explains(case, [*some.values()])
        if levels is None:
            break  # One input that differs is enough.
        within |= dict.fromkeys(some, levels)

    def excused(one: Comparison) -> Comparison:
        levels = within.get((one.label, one.case, one.how))
        if one.ok or levels is None:
            return one
        level = levels[one.output]
        return replace(one, state=NOISE if level <= _LARGE else UNSHOWN, noise=level)

    return [*map(excused, comparisons)]


def _not_shown(runs: Runs, comparisons: Sequence[Comparison]) -> list[str]:
    """Outputs that are NaN alone, that never have elements, and that are not determined."""
    shares: dict[str, float] = {}
    for masks in runs.undetermined.values():
        for name, mask in masks.items():
            shares[name] = max(shares.get(name, 0.0), float(np.mean(mask)))
    shown = {one.output for one in comparisons if one.state != RANDOM and one.difference.size}
    told = [
        f"'{name}' is not shown: {100 * share:.2g} % of its elements are not determined by the "
        "original (two runs of it differ)"
        for name, share in sorted(shares.items())
        if share < 1
    ]
    random = sorted(name for name, share in shares.items() if share == 1 and name not in shown)
    told += [f"{_listed(random)} random: type and shape alone are compared"] if random else []
    names = {one.output for one in comparisons} - {*random}
    values = {
        name: [array for one in runs.expected for array in arrays(one.get(name))]
        for name in sorted(names)
    }
    empty = [name for name, some in values.items() if not any(array.size for array in some)]
    if empty:
        told.append(f"{_listed(empty)} without elements")
    nan = [
        name
        for name, some in values.items()
        if name not in empty and all(_is_nan(array) for array in some if array.size)
    ]
    return told + ([f"{_listed(nan)} NaN alone"] if nan else [])


def _is_nan(array: np.ndarray) -> bool:
    if array.dtype.kind in "OSUbiu":
        return False
    return bool(np.isnan(array.astype(np.complex128 if array.dtype.kind == "c" else float)).all())


def _listed(names: Sequence[str]) -> str:
    said = ", ".join(f"'{name}'" for name in names)
    return f"{said} {'is' if len(names) == 1 else 'are'}"
