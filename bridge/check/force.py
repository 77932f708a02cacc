"""Forces the branches and numbers of iterations that no input reached, in all versions alike, and
says which branches a conversion pruned."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import bridge
from bridge.check.compare import Difference, Results, Tolerances, differences
from bridge.check.diagnosis.forced import Candidate, Forced, Opened, force
from bridge.check.engines.sessions import open_session
from bridge.check.lines import shortened
from bridge.check.runs import Runs
from bridge.check.seek import Sought
from bridge.check.specialized import NEVER_TAKEN
from bridge.check.suite import Suite
from bridge.check.surgery.sites import Branch, Site, branches_of, is_forcible
from bridge.check.surgery.twins import twin_sites
from bridge.errors import BridgeError
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model
from bridge.options import ConvertOptions


@dataclass(frozen=True)
class Forcing:
    """What came of forcing branches. `pruned` are those that the conversion removed, and why;
    `gone` those of Ifs that the other file does not have."""

    forced: Mapping[Branch, Forced] = field(default_factory=dict)
    pruned: Mapping[Branch, str] = field(default_factory=dict)
    gone: Mapping[Branch, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


def force_missing(
    suite: Suite, sought: Sought, runs: Runs, tolerances: Tolerances, tell: Callable[[str], None]
) -> Forcing:
    """Forces the branches that no input takes, unless they are impossible. A branch that only empty
    or extreme inputs take is forced with other inputs, too."""
    sites, inputs = sought.sites, sought.inputs
    original = clone_model(suite.model(suite.original.opened))
    folded = suite.fixed.never_taken(original) if suite.fixed else set()
    never = {branch: NEVER_TAKEN for branch in folded - inputs.reached.keys()}
    plain = {
        b for case in inputs.cases if not (case.is_empty or case.is_extreme) for b in case.taken
    }
    missing = [
        branch
        for branch in branches_of(sites)
        if branch not in plain
        and branch not in never
        and (
            not sites[branch[0]].loop
            or (
                sites[branch[0]].forcible
                and branch not in inputs.reached
                and branch not in inputs.unreachable
            )
        )
    ]
    run = _Forcing(suite, sought, runs, tolerances, tell)
    there, lacking = missing, list[Branch]()
    if suite.files.other is not None:
        twins = twin_sites(suite.model(suite.original.opened), suite.model(suite.files.other))
        shared = {site.index for node, site in twins.items() if is_forcible(node)}
        there = [branch for branch in missing if branch[0] in shared]
        lacking = [b for b in missing if b[0] not in shared and not sites[b[0]].loop]
    forced: dict[Branch, Forced] = {}
    notes: list[str] = []
    for some, how in ((lacking, run.alone), (there, run.alike)):
        try:
            forced |= {one.branch: one for one in how(some)} if some else {}
        except BridgeError as error:
            notes.append(f"branches could not be forced: {shortened(str(error))}")
    pruned = _pruned(sites, [*suite.pruned, *run.pruned]) | never
    label = suite.others[0].label
    return Forcing(forced, pruned, dict.fromkeys(lacking, label), notes)


@dataclass
class _Forcing:
    suite: Suite
    sought: Sought
    runs: Runs
    tolerances: Tolerances
    tell: Callable[[str], None]
    pruned: list[str] = field(default_factory=list)

    def alone(self, branches: Sequence[Branch]) -> list[Forced]:
        """Explains why the other file may lack branches of Ifs. A conversion into its format prunes
        them, or the model itself cannot run them: these are the answer."""
        suite = self.suite
        self.pruned += _converted_alike(suite)

        def opened(mine: Model, its: Model | None) -> Opened:
            return open_session(suite.write(mine, suite.original.opened, "alone")), []

        model = suite.model(suite.original.opened)
        return [one for one in self._forced(branches, (model, None), opened) if one.problem]

    def alike(self, branches: Sequence[Branch]) -> Sequence[Forced]:
        """Forces branches in both models alike. The conversion may prune a branch whose condition
        was constant before."""

        def opened(mine: Model, its: Model | None) -> Opened:
            (_, path), *files = self.suite.changed("steered", mine, its, self.pruned)
            first = open_session(path)
            return first, [(label, open_session(file, like=first)) for label, file in files]

        return self._forced(branches, self.suite.models(), opened)

    def _forced(
        self,
        branches: Sequence[Branch],
        models: tuple[Model, Model | None],
        opened: Callable[[Model, Model | None], Opened],
    ) -> Sequence[Forced]:
        cases = [c for c in self.sought.inputs.cases if not (c.is_empty or c.is_extreme)]
        some = [Candidate(c.feeds, c.taken) for c in cases or self.sought.inputs.cases]

        def compared(expected: Results, actual: Results) -> Mapping[str, Difference]:
            found = differences(expected, actual, self.tolerances)
            return {name: how for name, how in found.items() if name not in self.runs.random}

        return force(models, branches, some, opened, compared, self.tell)


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
    found: dict[Branch, str] = {}
    for site in (site for site in sites if not site.loop):
        where = re.sub(r" / (then|else)_branch(?= / )", "", site.where)
        for line in lines:
            match = re.fullmatch(re.escape(where) + r": its (then|else)_branch (.*)", line)
            if match:
                found[site.index, match[1] == "then"] = match[2]
    return found
