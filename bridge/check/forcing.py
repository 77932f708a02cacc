"""Forces the branches and numbers of iterations that no input reached, in all versions alike."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bridge.check.bench import Bench
from bridge.check.compare import Difference
from bridge.check.diagnosis.aligned import Aligned
from bridge.check.diagnosis.forced import Candidate, Forced, OpenAll, Opened, force
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.outputs import Results
from bridge.check.pair import Models
from bridge.check.specialized import NEVER_TAKEN, Fixed
from bridge.check.surgery.sites import Branch, Site, is_forcible
from bridge.check.surgery.twins import twin_sites
from bridge.check.surgery.watching import RAN
from bridge.errors import BridgeError
from bridge.neutral.graph import Model


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
        twins = twin_sites(*map(pair.loaded, (pair.source, pair.against)))
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

    def opened(mine: Model, its: Model | None) -> Opened:
        return load(pair.rewritten(pair.source, mine, "alone"))[0], []

    found = _forced(bench, gone, (pair.loaded(pair.source), None), opened)
    return [one for one in found if one.problem]


class _Settled(Aligned):
    """What is wrong in a first run only is a note."""

    def run(self, feeds: Results) -> dict[str, Any]:
        super().run(feeds)
        return super().run(feeds)


def _forced_alike(bench: Bench, missing: list[Branch]) -> Sequence[Forced]:
    """Forces branches in both models alike."""

    def opened(mine: Model, its: Model | None) -> Opened:
        original, files = bench.pair.changed("steered", mine, its)
        first = load(original)[0]
        names = [port.name for port in first.outputs if port.name != RAN]
        return first, [(label, _Settled(load(path)[0], names)) for label, path in files]

    return _forced(bench, missing, bench.pair.both(), opened)


def _forced(
    bench: Bench, branches: Sequence[Branch], models: Models, open_all: OpenAll
) -> Sequence[Forced]:
    """The results of forcing branches with the inputs of the report."""
    report, comparison = bench.report, bench.comparison
    each = enumerate(zip(report.feeds, report.taken, strict=True))
    some = [Candidate(feed, taken) for place, (feed, taken) in each if place not in report.aside]
    some = some or [Candidate(*one) for one in zip(report.feeds, report.taken, strict=True)]

    def differences(expected: Results, actual: Results) -> dict[str, Difference]:
        found = comparison.differences(expected, actual)
        return {name: how for name, how in found if name not in comparison.random}

    return force(models, branches, some, open_all, differences, bench.tell)


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
