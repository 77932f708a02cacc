"""What each version gives for each input: in order through one request, as a service does, and each
of a few inputs alone in a fresh one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bridge.check.compare import Results
from bridge.check.engines import EngineError, UndefinedCallError
from bridge.check.inputs.wanted import Inputs
from bridge.check.suite import Suite

RunOutcome = Results | EngineError
"""The outputs of a run, or why there are none."""

IN_ORDER, ALONE = "", "alone in a fresh request"

_ALONE = 4  # inputs that run alone: the model is compiled again for each


@dataclass(frozen=True)
class Run:
    """One run of one version: the number of its input, and `how` it ran."""

    label: str
    case: int
    how: str
    outcome: RunOutcome


@dataclass(frozen=True)
class Runs:
    """`expected` are the original's outputs for each input. `random` are outputs that have other
    numbers in each run of the original."""

    expected: Sequence[Results]
    runs: Sequence[Run]
    random: frozenset[str]


def run_all(
    suite: Suite, inputs: Inputs, expected: Sequence[Results], tell: Callable[[str], None]
) -> Runs:
    """Runs all versions with all inputs. Inputs without elements come last: they may spoil what a
    kernel keeps."""
    order = sorted(range(len(inputs.cases)), key=lambda place: inputs.cases[place].is_empty)
    runs: list[Run] = []
    alone = _alone(inputs, order)
    for variant in suite.others:
        tell(f"running {variant.label}")
        for how in (IN_ORDER, ALONE) if variant.session.keeps else (IN_ORDER,):
            places = alone if how == ALONE else order
            feeds = [inputs.cases[place].feeds for place in places]
            outcomes = variant.session.run_each(feeds, fresh=how == ALONE)
            runs += [
                Run(variant.label, place, how, outcome)
                for place, outcome in zip(places, outcomes, strict=True)
                if not isinstance(outcome, UndefinedCallError)
            ]
    return Runs(expected, [*runs, *_in_rows(suite, inputs)], _random(suite, inputs, expected, runs))


def _alone(inputs: Inputs, order: Sequence[int]) -> list[int]:
    """The inputs that differ most: the first, the largest, and one for each combination of
    branches, of those one that comes late: in order, it has most before it."""
    if not order:
        return []
    takers = {inputs.cases[place].taken: place for place in order}
    largest = max(order, key=lambda place: _size(list(inputs.cases[place].feeds.values())))
    return [*dict.fromkeys((order[0], largest, *takers.values()))][:_ALONE]


def _size(value: object) -> int:
    return sum(map(_size, value)) if isinstance(value, list) else np.size(value)  # type: ignore[arg-type]


def _in_rows(suite: Suite, inputs: Inputs) -> list[Run]:
    """Calls in a row of the versions that keep states from call to call."""
    runs = []
    feeds = [inputs.cases[place].feeds for place in inputs.row]
    for variant in suite.others if feeds else ():
        if not variant.session.has_states:
            continue
        try:
            outcomes: Sequence[RunOutcome] = variant.session.run_row(feeds)
        except EngineError as error:
            outcomes = [error]
        runs += [
            Run(variant.label, place, f"call {number} of {len(feeds)} in a row", outcome)
            for number, (place, outcome) in enumerate(zip(inputs.row, outcomes, strict=False), 1)
        ]
    return runs


_AGAIN = 4  # runs of the original; a random bit may be the same in a few


def _random(
    suite: Suite, inputs: Inputs, expected: Sequence[Results], runs: Sequence[Run]
) -> frozenset[str]:
    """The outputs that have other bits in further runs of the original. It runs again if it draws
    random numbers, or if a version gives other bits."""
    original = suite.original
    draws = any(node.op in _DRAWING for node in suite.model(original.opened).graph.walk())
    first = next(
        (run.case for run in runs if not _same_bits(expected[run.case], run.outcome)), None
    )
    if first is None and not draws:
        return frozenset()
    case = first or 0
    again = original.session.run_each([inputs.cases[case].feeds] * _AGAIN)
    return frozenset(
        name
        for one in again
        if not isinstance(one, EngineError)
        for name, value in expected[case].items()
        if not _same(value, one[name])
    )


_DRAWING = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
    | {"RandomUniformLike", "ir::RandomUniform", "ir::Multinomial", "Dropout"}
)


def _same_bits(expected: Results, outcome: RunOutcome) -> bool:
    if isinstance(outcome, EngineError):
        return True
    return all(_same(value, outcome[name]) for name, value in expected.items() if name in outcome)


def _same(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return type(one) is type(other) and one == other
    if one.dtype.kind in "OSU":
        return np.array_equal(one, other)
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
