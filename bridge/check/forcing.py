"""Forces the branches and numbers of iterations that no input reached, in all versions alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bridge.check.aside import is_empty
from bridge.check.bench import Bench
from bridge.check.engines import EngineError, Session
from bridge.check.force import Forced, settings, steered_sites, to_switch
from bridge.check.instrument import (
    TAKEN,
    Branch,
    Site,
    all_taken,
    instrument,
    is_forcible,
    sites_of,
)
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.matching import matched_sites
from bridge.check.outputs import Results
from bridge.check.pair import Models
from bridge.check.specialized import NEVER_TAKEN, Fixed
from bridge.errors import BridgeError
from bridge.neutral.graph import Model, Node


def force_branches(bench: Bench, fixed: Fixed) -> None:
    """Fills the report with the results of forcing branches, and the branches that the conversion
    pruned. `fixed` has what a specialized version holds."""
    report, pair = bench.report, bench.pair
    gone = fixed.never_taken(pair.load(pair.source)) if fixed else set()
    never = {branch: NEVER_TAKEN for branch in gone - report.reached.keys()}
    missing = [
        branch
        for branch in report.branches
        if (branch not in report.reached and branch not in never) or branch in report.doubtful
    ]
    if missing:
        _force(bench, missing)
    # Not before: if a condition is constant, the conversion keeps one branch, prunes nothing.
    report.pruned = _pruned(report.sites, pair.pruned) | never


def _force(bench: Bench, missing: list[Branch]) -> None:
    """Forces branches, unless they are impossible."""
    report, pair = bench.report, bench.pair
    sites = report.sites
    missing = [
        branch
        for branch in missing
        if not sites[branch[0]].loop
        or (sites[branch[0]].forcible and not {branch} & {*report.reached, *report.unreachable})
    ]
    there, gone = missing, list[Branch]()
    if pair.against is not None:
        twins = matched_sites(*map(pair.loaded, (pair.source, pair.against)))
        shared = {site.index for node, site in twins.items() if is_forcible(node)}
        there = [branch for branch in missing if branch[0] in shared]
        gone = [b for b in missing if b[0] not in shared and not sites[b[0]].loop]
    for some, forced in ((gone, _forced_alone), (there, _forced_alike)):
        try:
            found = forced(bench, some) if some else []
        except BridgeError as error:
            report.notes.append(f"branches could not be forced: {shortened(str(error))}")
        else:
            report.forced |= {result.branch: result for result in found}


def _forced_alone(bench: Bench, gone: list[Branch]) -> list[Forced]:
    """Explains why the other file may lack branches of Ifs. A conversion into its format prunes
    them, or the model itself cannot run them: these are the answer."""
    report, pair = bench.report, bench.pair
    assert pair.against is not None
    report.gone = {branch: pair.against.name for branch in gone}
    pair.convert_alike()
    switched = to_switch(report.sites, gone)
    model = pair.load(pair.source)
    instrument(model, switched, _steered_nodes(report.sites, model, switched))
    first, _ = load(pair.rewritten(pair.source, model, "alone"))
    return [one for one in _forced(bench, gone, first, []) if one.problem]


def _forced_alike(bench: Bench, missing: list[Branch]) -> list[Forced]:
    """Forces branches in both models alike."""
    switched = to_switch(bench.report.sites, missing)
    mine, its = steered(bench, switched)
    original, files = bench.pair.changed("steered", mine, its)
    first, _ = load(original)
    return _forced(bench, missing, first, [(label, load(path)[0]) for label, path in files])


_AT_ONCE = 16  # branches, so that few outputs wait to be compared


def _forced(
    bench: Bench,
    branches: Sequence[Branch],
    first: Session,
    others: Sequence[tuple[str, Session]],
) -> list[Forced]:
    """The results of forcing branches in models that have switches. `first` has to run a branch
    with an input of the report, and the others are held to it."""
    found: list[Forced] = []
    switched = to_switch(bench.report.sites, branches)
    watched = steered_sites(bench.report.sites, switched)
    for at in range(0, len(branches), _AT_ONCE):
        ran: list[tuple[Branch, Results, Results]] = []
        for number, branch in enumerate(branches[at : at + _AT_ONCE], at + 1):
            bench.tell(f"forcing branch {number} of {len(branches)}")
            one = _run(bench, switched, watched, branch, first)
            if isinstance(one, str):
                found.append(Forced(branch, one))
            else:
                ran.append((branch, *one))
        found += _held_to(bench, first, others, ran)
    return found


def _run(
    bench: Bench, switched: Sequence[int], watched: Sequence[Site], branch: Branch, first: Session
) -> tuple[Results, Results] | str:
    """An input with which the branch runs, and the outputs, or why there is none.

    Inputs without elements are left out: an engine may crash in a branch that they do not take.
    Inputs that differ by themselves show nothing. The inputs that come nearest to the branch are
    tried first. If all fail, the failure of the first is the reason."""
    report, problem = bench.report, ""
    whole = [place for place, feed in enumerate(report.feeds) if not is_empty(feed)]
    some = [place for place in whole if place not in report.aside] or whole
    around = set(report.sites[branch[0]].parents)
    for place in sorted(some, key=lambda place: -len(report.taken[place] & around)):
        given = {**report.feeds[place], **settings(report.sites, switched, branch)}
        try:
            outputs = first.run(given)
        except EngineError as error:
            problem = problem or f"the model itself fails there: {error}"
            continue
        if branch in all_taken(outputs, watched):
            return given, outputs
        problem = problem or "the body around it never ran"
    return problem or "there is no input to try it with"


def _held_to(
    bench: Bench,
    first: Session,
    others: Sequence[tuple[str, Session]],
    ran: Sequence[tuple[Branch, Results, Results]],
) -> list[Forced]:
    """The results of running the other models as the first model was run: with these inputs, which
    gave these outputs.

    A failure with a forced number of iterations does not count as a difference: no input may ever
    lead to that number."""
    wrong: dict[Branch, dict[str, str]] = {branch: {} for branch, _, _ in ran}
    failed: dict[Branch, list[str]] = {branch: [] for branch in wrong}
    for label, session in others:
        actual = session.run_each([given for _, given, _ in ran])
        for (branch, given, expected), outputs in zip(ran, actual, strict=True):
            if not isinstance(outputs, EngineError):
                judged = bench.comparison.judged(first, session, given, expected, outputs)
                # The other model may lack some of the Ifs.
                told = (one for one in judged if one[0] != TAKEN or bench.pair.against is None)
                found = "; ".join(f"'{name}': {d}" for name, d in told if not d.ok)
            elif bench.report.sites[branch[0]].loop:
                failed[branch].append(f"{label} fails: {outputs}")
                continue
            else:
                found = str(outputs)
            if found:
                wrong[branch][label] = f"{label}: {found}"
    return [
        Forced(
            branch, "; ".join([*wrong[branch].values(), *failed[branch]]), (*wrong[branch],), given
        )
        for branch, given, _ in ran
    ]


def steered(bench: Bench, switched: Sequence[int]) -> Models:
    """Both models with switches at these Ifs."""
    mine, its = bench.pair.both()
    if switched:
        nodes = _steered_nodes(bench.report.sites, mine, switched)
        if its is not None:
            twins = matched_sites(mine, its)
            instrument(its, switched, {n: s for n, s in twins.items() if s in nodes.values()})
        instrument(mine, switched, nodes)
    return mine, its


def _steered_nodes(
    sites: Sequence[Site], model: Model, switched: Sequence[int]
) -> dict[Node, Site]:
    """The nodes of the first model that are watched where these sites are forced."""
    watched = set(steered_sites(sites, switched))
    return {node: site for node, site in sites_of(model).items() if site in watched}


def _pruned(sites: Sequence[Site], lines: Sequence[str]) -> dict[Branch, str]:
    """The branches that the conversion's report says it pruned, and why."""
    found: dict[Branch, str] = {}
    for site in (site for site in sites if not site.loop):
        where = re.sub(r" / (then|else)_branch(?= / )", "", site.where)
        for line in lines:
            match = re.fullmatch(re.escape(where) + r": its (then|else)_branch (.*)", line)
            if match:
                found[site.index, match[1] == "then"] = match[2]
    return found
