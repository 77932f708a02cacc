"""What each version gives for each input: in order through one request, as a service does, and each
of a few inputs alone in a fresh one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bridge.check.compare import Results, compare
from bridge.check.engines import EndlessError, EngineError, UndefinedCallError
from bridge.check.inputs.wanted import Inputs
from bridge.check.lines import shortened
from bridge.check.suite import Suite, Variant
from bridge.errors import UsageError
from bridge.neutral.graph import Value
from bridge.neutral.types import TensorType

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
    kernel keeps. A version that does not end once is not run again."""
    order = sorted(range(len(inputs.cases)), key=lambda place: inputs.cases[place].is_empty)
    alone = _alone(inputs, order)
    runs: list[Run] = []
    for variant in suite.others:
        tell(f"running {variant.label}")
        some = [(place, IN_ORDER) for place in order]
        some += [(place, ALONE) for place in alone if variant.session.keeps]
        for place, how in some:
            feed = inputs.cases[place].feeds
            (outcome,) = variant.session.run_each([feed], fresh=how == ALONE)
            if not isinstance(outcome, UndefinedCallError):
                runs.append(Run(variant.label, place, how, outcome))
            if isinstance(outcome, EndlessError):
                break
        else:
            runs += _in_row(variant, inputs)
    return Runs(expected, runs, _random(suite, inputs, expected, runs))


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


def _in_row(variant: Variant, inputs: Inputs) -> list[Run]:
    """Calls in a row of a version that keeps states from call to call."""
    if not (inputs.row and variant.session.has_states):
        return []
    try:
        feeds = [inputs.cases[place].feeds for place in inputs.row]
        outcomes: Sequence[RunOutcome] = variant.session.run_row(feeds)
    except EngineError as error:
        outcomes = [error]
    return [
        Run(variant.label, place, f"call {number} of {len(inputs.row)} in a row", outcome)
        for number, (place, outcome) in enumerate(zip(inputs.row, outcomes, strict=False), 1)
    ]


_AGAIN = 4  # runs of the original; a random bit may be the same in a few


def _random(
    suite: Suite, inputs: Inputs, expected: Sequence[Results], runs: Sequence[Run]
) -> frozenset[str]:
    """The outputs that have other numbers in further runs of the original. It runs again if it
    draws random numbers, or if a version gives other numbers."""
    original = suite.original
    draws = any(node.op in _DRAWING for node in suite.model(original.opened).graph.walk())
    first = next((run.case for run in runs if not _same(expected[run.case], run.outcome)), None)
    if first is None and not draws:
        return frozenset()
    case = first or 0
    again = original.session.run_each([inputs.cases[case].feeds] * _AGAIN)
    return frozenset(
        name
        for one in again
        if not isinstance(one, EngineError)
        for name, value in expected[case].items()
        if not compare(value, one[name], 0.0, 0.0).ok
    )


_DRAWING = frozenset(
    {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"}
    | {"RandomUniformLike", "ir::RandomUniform", "ir::Multinomial", "Dropout"}
)


def _same(expected: Results, outcome: RunOutcome) -> bool:
    """Whether a run gave the very same numbers, or failed."""
    if isinstance(outcome, EngineError):
        return True
    some = ((value, outcome[name]) for name, value in expected.items() if name in outcome)
    return all(compare(value, found, 0.0, 0.0).ok for value, found in some)


def require_related(suite: Suite, runs: Runs) -> None:
    """Raises UsageError, in one line, if the other of two files took no input because its inputs
    differ: in number, or in type, by name or else by place."""
    if not suite.is_pair or not all(isinstance(run.outcome, EngineError) for run in runs.runs):
        return
    first, other = (suite.model(variant.path).graph.inputs for variant in suite.variants)
    named = {name: value for value in first for name in value.names}
    pairs = [(named.get(value.name), value) for value in other]
    if len(first) == len(other) and not all(mine for mine, _ in pairs):
        pairs = [*zip(first, other, strict=True)]
    if not all(mine is not None and _fit(mine, its) for mine, its in pairs):
        mine, its = (", ".join(f"{one.name} {one.type}" for one in some) for some in (first, other))
        raise UsageError(
            f"inputs differ: {suite.original.path.name} takes {shortened(mine) or 'no input'}; "
            f"{suite.others[0].label} takes {shortened(its) or 'no input'}"
        )


def _fit(mine: Value, its: Value) -> bool:
    """Whether some tensor fits both inputs."""
    if not (isinstance(mine.type, TensorType) and isinstance(its.type, TensorType)):
        return True
    kinds = {value.element and value.element.kind for value in (mine, its)} - {None}
    return len(kinds) < 2 and len({mine.rank, its.rank} - {None}) < 2
