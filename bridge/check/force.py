"""Forces the branches and numbers of iterations that no input reached, in all versions alike, and
says which branches a conversion pruned."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

import bridge
from bridge.check.branches import BranchResults, Forced
from bridge.check.compare import Difference, Results, Tolerances, differences
from bridge.check.determined import settled
from bridge.check.engines import EndlessError, EngineError, Session
from bridge.check.inputs.recipe import Case
from bridge.check.runs import Runs
from bridge.check.seek import Sought
from bridge.check.specialized import NEVER_TAKEN
from bridge.check.suite import Models, Suite
from bridge.check.surgery.sites import Branch, Site, branches_of, is_forcible, sites_of
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.switches import OWN
from bridge.check.surgery.twins import twin_sites
from bridge.check.surgery.watching import RAN, all_taken
from bridge.errors import BridgeError, shortened
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import BRANCHES, Model, Node
from bridge.options import ConvertOptions
from bridge.report import PrunedBranch

Opened = Sequence[tuple[str, Session]]
"""The original and the versions with their labels. All have the original's names."""


def force_missing(
    suite: Suite,
    sought: Sought,
    known: BranchResults,
    runs: Runs,
    tolerances: Tolerances,
    tell: Callable[[str], None],
) -> tuple[BranchResults, list[str]]:
    """Forces the branches that no input takes, unless they are impossible. A branch that only empty
    or extreme inputs take is forced with other inputs, too. What is `known` of branches then, and
    notes."""
    sites, inputs, original = sought.sites, sought.inputs, suite.original
    model = suite.model(original.opened)
    folded = suite.fixed.never_taken(clone_model(model)) if suite.fixed else set()
    never = {branch: NEVER_TAKEN for branch in folded - inputs.reached.keys()}
    cases = [case for case in inputs.cases if not (case.is_empty or case.is_extreme)]
    shown = {branch for case in cases for branch in case.taken} | never.keys()
    loops = {(s.index, n) for s in sites if s.loop for n in s.outcomes}
    fixed = {(s.index, n) for s in sites if not s.forcible for n in s.outcomes}
    shown |= loops & (fixed | inputs.reached.keys() | inputs.unreachable.keys())
    missing = [branch for branch in branches_of(sites) if branch not in shown]
    pruned = [*suite.pruned]
    drawn = {n for case, some in runs.undetermined.items() for n in some if runs.is_open(case, n)}

    def alike(models: Models) -> Opened:
        steered = suite.changed("steered", models)
        pruned.extend(steered.pruned)
        return [(one.label, one.session) for one in steered.variants]

    def compared(expected: Results, actual: Results) -> Mapping[str, Difference]:
        expected, actual = (settled(one, {}, runs.orders) for one in (expected, actual))
        found = differences(expected, actual, tolerances)
        return {name: how for name, how in found.items() if name not in drawn}

    there, lacking = missing, list[Branch]()
    if suite.files.other is not None:
        twins = twin_sites(model, suite.model(suite.files.other))
        shared = {site.index for node, site in twins.items() if is_forcible(node)}
        there = [branch for branch in missing if branch[0] in shared]
        lacking = [b for b in missing if b[0] not in shared and not sites[b[0]].loop]
    forced: dict[Branch, Forced] = {}
    notes: list[str] = []
    try:
        if there:
            found = force(suite.models(), there, cases or inputs.cases, alike, compared, tell)
            forced = {one.branch: one for one in found}
        # The other file may lack an If because a conversion prunes its branches.
        pruned += _converted_alike(suite) if lacking else []
    except BridgeError as error:
        notes.append(f"branches could not be forced: {shortened(str(error))}")
    gone = dict.fromkeys(lacking, suite.others[0].label)
    whole = replace(known, forced=forced, pruned=_pruned(sites, pruned) | never, gone=gone)
    return whole, notes


def force(
    models: Models,
    branches: Sequence[Branch],
    cases: Sequence[Case],
    opened: Callable[[Models], Opened],
    compared: Callable[[Results, Results], Mapping[str, Difference]],
    tell: Callable[[str], None] = lambda step: None,
) -> list[Forced]:
    """The results of forcing branches, each with the input that comes nearest to it. Those without
    elements are left out if there are others: an engine may crash in a branch that they do not
    take. A version that does not end once is not run again.

    `compared` holds outputs to those that are expected. An output that has other numbers in a
    second run of the original is left out."""
    sites = list(sites_of(models[0]).values())
    switched = to_switch(sites, branches)
    (_, first), *others = opened(steer(models, switched))
    whole = [case for case in cases if not case.is_empty] or cases
    found: list[Forced] = []
    for number, branch in enumerate(branches, 1):
        tell(f"forcing branch {number} of {len(branches)}")
        ran = _run(sites, switched, branch, whole, first)
        if isinstance(ran, str):
            found.append(Forced(branch, ran))
            continue
        given, expected = ran
        said, wrong = list[str](), list[str]()
        for label, session in [*others]:
            try:
                some = compared(expected, session.run(given))
                some = {name: how for name, how in some.items() if not how.ok}
                again = compared(expected, _own(first.run(given))) if some else {}
                texts = [f"'{name}': {how}" for name, how in some.items() if again[name].ok]
                said += [f"{label}: {'; '.join(texts)}"] if texts else []
            except EngineError as error:
                # It may be a number of iterations that never is.
                is_loop = sites[branch[0]].loop
                texts = [] if is_loop else [str(error)]
                said.append(f"{label}{' fails' if is_loop else ''}: {error}")
                if isinstance(error, EndlessError):
                    others.remove((label, session))
            wrong += [label] if texts else []
        found.append(Forced(branch, "; ".join(said), given, tuple(wrong)))
    return found


def _own(outputs: Results) -> Results:
    """The outputs that the model itself has."""
    return {name: value for name, value in outputs.items() if name != RAN}


def steer(models: Models, switched: Collection[int]) -> Models:
    """Copies of both models with switches at these sites of the first, which say what they take."""
    mine, its = models

    def steered(model: Model, sites: Mapping[Node, Site]) -> Model:
        some = {n: s for n, s in sites.items() if not s.loop or s.index in switched}
        surgery = Surgery(model)
        surgery.switch(switched, some)
        surgery.watch(some)
        return surgery.model

    other = None if its is None else steered(its, twin_sites(mine, its))
    return steered(mine, sites_of(mine)), other


def to_switch(sites: Sequence[Site], branches: Collection[Branch]) -> list[int]:
    """The sites that need a switch to force these branches: their own and the Ifs around them."""
    around = {parent for index, _ in branches for parent, _ in sites[index].parents}
    return sorted(around | {index for index, _ in branches})


def _run(
    sites: Sequence[Site],
    switched: Sequence[int],
    branch: Branch,
    cases: Sequence[Case],
    first: Session,
) -> tuple[Results, Results] | str:
    """An input with which the branch runs, with the switches that lead into it, and the outputs; or
    why there is none. If all fail, the failure of the first is the reason."""
    problem, around = "", {*sites[branch[0]].parents}
    chosen: dict[int, int] = dict.fromkeys(switched, OWN) | dict([*around, branch])
    switches: dict[str, Any] = {
        sites[site].switch: np.array(int(value), np.int32) for site, value in chosen.items()
    }
    watched = [site for site in sites if not site.loop or site.index in switched]
    for case in sorted(cases, key=lambda one: -len(one.taken & around)):
        given = {**case.feeds, **switches}
        try:
            outputs = first.run(given)
        except EngineError as error:
            problem = problem or f"the model itself fails there: {error}"
            continue
        if branch in all_taken(outputs, watched):
            return given, _own(outputs)
        problem = problem or "the body around it never ran"
    return problem or "there is no input to try it with"


def _converted_alike(suite: Suite) -> list[str]:
    """What a conversion of the original with the other file's input shapes prunes."""
    assert suite.files.other is not None
    original = suite.model(suite.original.opened)
    known = {name for value in original.graph.inputs for name in value.names}
    shapes = {
        value.name: value.shape
        for value in suite.model(suite.files.other).graph.inputs
        if value.name in known and value.shape is not None
    }
    options = {"input_shapes": shapes, **suite.files.options}
    path = suite.scratch / f"alike{suite.files.other.suffix.lower()}"
    return list(bridge.convert(original, path, **cast(ConvertOptions, options)).pruned)


def _pruned(sites: Sequence[Site], lines: Sequence[str]) -> dict[Branch, str]:
    """The branches that a conversion's report says it pruned, and why."""
    places: dict[str, list[Site]] = {}
    for site in (site for site in sites if not site.loop):
        # A report leaves out which branches lead to a node.
        parts = [part for part in site.where.split(" / ") if part not in BRANCHES]
        places.setdefault(" / ".join(parts), []).append(site)
    return {
        (site.index, line.role == BRANCHES[0]): line.why
        for line in lines
        if isinstance(line, PrunedBranch)
        for site in places.get(line.where, ())
    }
