"""Forces the branches and numbers of iterations that no input reached, in all versions alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from bridge.check.aside import is_empty
from bridge.check.bench import Bench
from bridge.check.engines import Session
from bridge.check.force import Forced, force, steered_sites, to_switch
from bridge.check.instrument import TAKEN, Branch, Site, instrument, is_forcible, sites_of
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
    return [one for one in _forced(bench, gone, first, [], lambda *_: "") if one.problem]


def _forced_alike(bench: Bench, missing: list[Branch]) -> list[Forced]:
    """Forces branches in both models alike."""
    switched = to_switch(bench.report.sites, missing)
    mine, its = steered(bench, switched)
    original, files = bench.pair.changed("steered", mine, its)
    first, _ = load(original)
    others = [(label, load(path)[0]) for label, path in files]

    def different(session: Session, feed: Results, expected: Results, actual: Results) -> str:
        found = bench.comparison.judged(first, session, feed, expected, actual)
        # The other model may lack some of the Ifs.
        told = (one for one in found if one[0] != TAKEN or its is None)
        return "; ".join(f"'{name}': {d}" for name, d in told if not d.ok)

    return _forced(bench, missing, first, others, different)


def _forced(
    bench: Bench,
    branches: Sequence[Branch],
    first: Session,
    others: Sequence[tuple[str, Session]],
    differences: Callable[[Session, Results, Results, Results], str],
) -> list[Forced]:
    """The results of forcing branches. Inputs without elements are left out: an engine may
    crash in a branch that they do not take. Inputs that differ by themselves show nothing."""
    report = bench.report
    whole = [place for place, feed in enumerate(report.feeds) if not is_empty(feed)]
    some = [place for place in whole if place not in report.aside] or whole
    return force(
        report.sites, branches, first, others, [report.feeds[place] for place in some],
        [report.taken[place] for place in some], differences, bench.tell,
    )  # fmt: skip


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
