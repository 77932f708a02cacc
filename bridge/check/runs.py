"""What each version gives for each input: in order through one request, as a service does, and each
of a few inputs alone in a fresh one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bridge.check.compare import Results, Tolerances, compare, differences, is_real
from bridge.check.determined import Masks, draws, free_orders, settled, undetermined
from bridge.check.engines import EndlessError, EngineError, OpenVino, UndefinedCallError
from bridge.check.engines.adapters import named_like
from bridge.check.inputs.recipe import Case
from bridge.check.inputs.wanted import Inputs
from bridge.check.request import Request
from bridge.check.seek import Sought, breaks_ranks
from bridge.check.suite import Suite, Variant
from bridge.check.surgery.watching import all_taken
from bridge.errors import BridgeError, UsageError, shortened
from bridge.neutral.graph import Value
from bridge.neutral.types import TensorType

RunOutcome = Results | EngineError
"""The outputs of a run, or why there are none."""

IN_ORDER, ALONE = "", "alone in a fresh request"

_SMALLER = (0.3, 0.05, 0.01)
_BY_DEFAULT = 3  # inputs that run with default settings
_FEWER_BITS = "; OpenVINO may compute in fewer bits: INFERENCE_PRECISION_HINT=f32 prevents bf16"
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
    """`expected` are the original's outputs for each input. `undetermined` are the elements that
    the original does not determine, by input and output: they are 0 in all results. `orders` are
    the axes of outputs along which any order is right."""

    expected: Sequence[Results]
    runs: Sequence[Run]
    undetermined: Mapping[int, Masks] = field(default_factory=dict)
    orders: Mapping[str, int] = field(default_factory=dict)

    def settled(self, case: int, results: Results) -> Results:
        """Results of an input, with what is not determined the same in all."""
        return settled(results, self.undetermined.get(case, {}), self.orders)

    def is_open(self, case: int, output: str) -> bool:
        """Whether no element of an output is determined."""
        return bool(np.all(self.undetermined.get(case, {}).get(output, False)))


def run_all(
    suite: Suite,
    inputs: Inputs,
    expected: Sequence[Results],
    tolerances: Tolerances,
    tell: Callable[[str], None],
) -> Runs:
    """Runs all versions with all inputs. Inputs without elements, and with outputs of other ranks
    than declared, come last: they may spoil what a kernel keeps. A version that does not end once
    is not run again."""
    original = suite.original.session
    odd = [
        case.is_empty or breaks_ranks(original, outputs)
        for case, outputs in zip(inputs.cases, expected, strict=True)
    ]
    order = sorted(range(len(inputs.cases)), key=odd.__getitem__)
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
    masks = _undetermined(suite, inputs, expected, runs, tolerances)
    orders = free_orders(suite.model(suite.original.opened).graph)
    found = Runs(expected, runs, masks, orders)
    return replace(
        found,
        expected=[found.settled(case, one) for case, one in enumerate(expected)],
        runs=[
            run
            if isinstance(run.outcome, EngineError)
            else replace(run, outcome=found.settled(run.case, run.outcome))
            for run in runs
        ],
    )


def with_smaller(suite: Suite, sought: Sought, runs: Runs, request: Request) -> tuple[Sought, Runs]:
    """The inputs and runs with further ones, whose floats are smaller: their noise may be, too."""
    further: list[Case] = []
    for case in [one for one in sought.inputs.cases if not (one.is_empty or one.is_zeros)][:2]:
        floats = [name for name, value in case.feeds.items() if _is_float(value)]
        for factor in _SMALLER if floats else ():
            feeds = {
                name: (value * factor).astype(value.dtype) if name in floats else value
                for name, value in case.feeds.items()
            }
            further.append(replace(case, recipe=case.recipe.scaled(floats, factor), feeds=feeds))
    outputs = suite.original.session.run_each([case.feeds for case in further])
    ran = [sought.watched.run_each([case.feeds])[0] if sought.watched else {} for case in further]
    kept = [
        (replace(case, taken=all_taken(its, sought.sites)), one)
        for case, one, its in zip(further, outputs, ran, strict=True)
        if not (isinstance(one, EngineError) or isinstance(its, EngineError))
    ]
    count, cases = len(sought.inputs.cases), tuple(case for case, _ in kept)
    expected = [one for _, one in kept]
    only = replace(sought.inputs, cases=cases, row=())
    more = run_all(suite, only, expected, request.tolerances, request.tell)
    inputs = replace(sought.inputs, cases=(*sought.inputs.cases, *cases))
    return replace(sought, inputs=inputs, expected=[*sought.expected, *expected]), replace(
        runs,
        expected=[*runs.expected, *more.expected],
        runs=[*runs.runs, *(replace(run, case=run.case + count) for run in more.runs)],
        undetermined={
            **runs.undetermined,
            **{case + count: masks for case, masks in more.undetermined.items()},
        },
    )


def _is_float(value: object) -> bool:
    return isinstance(value, np.ndarray) and is_real(value)


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


def _undetermined(
    suite: Suite,
    inputs: Inputs,
    expected: Sequence[Results],
    runs: Sequence[Run],
    tolerances: Tolerances,
) -> dict[int, Masks]:
    """What is not determined, for inputs with which a version differs; of a model that draws random
    numbers, for all."""
    cases = {run.case for run in runs if not _same(expected[run.case], run.outcome, tolerances)}
    order = [*range(len(expected))] if draws(suite) else sorted(cases)
    feeds = [inputs.cases[one].feeds for one in order]
    found = undetermined(suite, feeds, tolerances) if feeds else []
    return {case: masks for case, masks in zip(order, found, strict=True) if masks}


def _same(expected: Results, outcome: RunOutcome, tolerances: Tolerances) -> bool:
    """Whether a run is equal, or failed."""
    return isinstance(outcome, EngineError) or all(
        how.ok for how in differences(expected, outcome, tolerances).values()
    )


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


def with_defaults(suite: Suite, inputs: Inputs, runs: Runs, tolerances: Tolerances) -> list[str]:
    """A note for each version that differs from the original with the engines' default settings:
    all optimisations, no hints. It says how far the original itself does in that engine.

    A check sets engines so that they compute what a model says. People run them otherwise: in bf16,
    or with caches of 8 bits. This explains what a user may see; the verdict does not depend on
    it."""
    cases = [place for place, one in enumerate(inputs.cases) if not one.is_empty][:_BY_DEFAULT]
    feeds = [inputs.cases[place].feeds for place in cases]
    original, sessions = suite.original, replace(suite.sessions, threads=None, defaults=True)

    def share(path: Path, in_openvino: bool = False) -> float | None:
        try:
            session = sessions.engine(OpenVino).load(path) if in_openvino else sessions.open(path)
            found = named_like(original.session, session).run_each(feeds)
        except BridgeError:
            return None
        if any(isinstance(one, EngineError) for one in found):
            return None
        shares = [
            how.of_range
            for case, one in zip(cases, found, strict=True)
            for name, value in runs.expected[case].items()
            if not (runs.is_open(case, name) or isinstance(one, EngineError)) and name in one
            for how in [compare(value, runs.settled(case, one)[name], *tolerances.of(name, value))]
            if not how.ok and not how.problem
        ]
        return max(shares, default=0.0)

    notes = []
    for variant in suite.others if feeds else ():
        far = share(variant.opened)
        if not far:
            continue
        own = share(original.opened, in_openvino=variant.is_ir)
        said = "" if own is None else f", the original by {100 * own:.2g} %"
        notes.append(
            f"with the engines' default settings, {variant.label} differs by {100 * far:.2g} % of "
            f"an output's range{said}{_FEWER_BITS if variant.is_ir else ''}"
        )
    return notes
