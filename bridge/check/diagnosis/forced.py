"""Forces branches and numbers of iterations that no input reaches, in all models alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridge.check.compare import Difference, Results
from bridge.check.engines import EngineError, Session
from bridge.check.inputs import is_empty
from bridge.check.surgery.sites import Branch, Site, sites_of
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.switches import OWN
from bridge.check.surgery.twins import twin_sites
from bridge.check.surgery.watching import RAN, all_taken
from bridge.neutral.graph import Model

Models = tuple[Model, Model | None]
"""A model, and the one that it is compared with; None if that is made of the first."""

Opened = tuple[Session, Sequence[tuple[str, Session]]]
"""The first model, and the others with their labels. All have the first model's names."""

OpenAll = Callable[[Model, Model | None], Opened]
"""Opens both models after a change."""


@dataclass(frozen=True)
class Forced:
    """What came of forcing one branch.

    `given` is the input, with the switches, with which the first model ran the branch, and
    `expected` its outputs. `given` is None if it did not, and `problem` says why. `differences` are
    those of each other model, by its label, in the outputs that differ. `failures` say why one
    failed: a number of iterations may be one that never is, so that failing in it is no
    difference."""

    branch: Branch
    problem: str = ""
    given: Results | None = None
    differences: Mapping[str, Mapping[str, Difference]] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    @property
    def wrong(self) -> tuple[str, ...]:
        """The labels of the models that differ."""
        return tuple(self.differences)

    def __str__(self) -> str:
        """Why the branch did not run, or how models differ or fail; "" if they agree."""
        found = [
            f"{label}: " + "; ".join(f"'{name}': {how}" for name, how in some.items())
            for label, some in self.differences.items()
        ]
        found += [f"{label} fails: {why}" for label, why in self.failures.items()]
        return self.problem or "; ".join(found)


@dataclass(frozen=True)
class Candidate:
    """An input to force branches with, and the branches that it takes by itself."""

    feed: Results
    taken: frozenset[Branch]


def force(
    models: Models,
    branches: Sequence[Branch],
    candidates: Sequence[Candidate],
    open_all: OpenAll,
    differences: Callable[[Results, Results], Mapping[str, Difference]],
    tell: Callable[[str], None] = lambda step: None,
) -> tuple[Forced, ...]:
    """The results of forcing branches, each with the input among the candidates that comes nearest
    to it. Those without elements are left out if there are others: an engine may crash in a branch
    that they do not take.

    `differences` compares outputs with those that are expected. An output that has other numbers in
    a second run of the first model is left out."""
    sites = list(sites_of(models[0]).values())
    switched = to_switch(sites, branches)
    first, others = open_all(*steer(models, switched))
    whole = [one for one in candidates if not is_empty(one.feed)] or candidates
    found: list[Forced] = []
    for number, branch in enumerate(branches, 1):
        tell(f"forcing branch {number} of {len(branches)}")
        ran = _run(sites, switched, branch, whole, first)
        if isinstance(ran, str):
            found.append(Forced(branch, ran))
            continue
        given, expected = ran
        wrong, failed = dict[str, Mapping[str, Difference]](), dict[str, str]()
        for label, session in others:
            try:
                some = differences(expected, session.run(given))
            except EngineError as error:
                if sites[branch[0]].loop:
                    failed[label] = str(error)
                else:
                    wrong[label] = {"outputs": Difference(ok=False, problem=str(error))}
                continue
            some = {name: how for name, how in some.items() if not how.ok}
            again = differences(expected, _own(first.run(given))) if some else {}
            some = {name: how for name, how in some.items() if again[name].ok}
            wrong |= {label: some} if some else {}
        found.append(Forced(branch, "", given, wrong, failed))
    return tuple(found)


def _own(outputs: Results) -> Results:
    """The outputs that the model itself has."""
    return {name: value for name, value in outputs.items() if name != RAN}


def steer(models: Models, switched: Collection[int]) -> Models:
    """Copies of both models with switches at these sites of the first, which say what they take."""
    mine, its = models
    own = {
        node: site
        for node, site in sites_of(mine).items()
        if not site.loop or site.index in switched
    }
    other = None
    if its is not None:
        watched = {site.index for site in own.values()}
        shared = {n: s for n, s in twin_sites(mine, its).items() if s.index in watched}
        other = Surgery(its)
        other.switch(switched, shared)
        other.watch(shared)
    surgery = Surgery(mine)
    surgery.switch(switched, own)
    surgery.watch(own)
    return surgery.model, None if other is None else other.model


def to_switch(sites: Sequence[Site], branches: Sequence[Branch]) -> list[int]:
    """The sites that need a switch to force these branches: their own and the Ifs around them."""
    needed = {index for index, _ in branches}
    for index, _ in branches:
        needed |= {parent for parent, _ in sites[index].parents}
    return sorted(needed)


def _settings(sites: Sequence[Site], switched: Sequence[int], branch: Branch) -> dict[str, Any]:
    """Values of the switches that lead into `branch` through the Ifs around it."""
    index, wanted = branch
    chosen = {site: OWN for site in switched}
    chosen |= {parent: int(taken) for parent, taken in sites[index].parents}
    chosen[index] = int(wanted)
    return {sites[site].switch: np.array(value, np.int32) for site, value in chosen.items()}


def _run(
    sites: Sequence[Site],
    switched: Sequence[int],
    branch: Branch,
    candidates: Sequence[Candidate],
    first: Session,
) -> tuple[Results, Results] | str:
    """An input with which the branch runs, and the outputs, or why there is none. If all fail, the
    failure of the first is the reason."""
    problem, around = "", {*sites[branch[0]].parents}
    watched = [site for site in sites if not site.loop or site.index in switched]
    for candidate in sorted(candidates, key=lambda one: -len(one.taken & around)):
        given = {**candidate.feed, **_settings(sites, switched, branch)}
        try:
            outputs = first.run(given)
        except EngineError as error:
            problem = problem or f"the model itself fails there: {error}"
            continue
        if branch in all_taken(outputs, watched):
            return given, _own(outputs)
        problem = problem or "the body around it never ran"
    return problem or "there is no input to try it with"
