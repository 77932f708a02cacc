"""Forces branches, and numbers of iterations, that no input reaches, in models with switches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.check.engines import EngineError, Session, run_each
from bridge.check.instrument import OWN, Branch, Site, all_taken
from bridge.check.outputs import Results


@dataclass(frozen=True)
class Forced:
    """The result of forcing one branch. `problem` says why the branch could not run, or how the
    models differ with the input `given`. `problem` is empty if they agree. `wrong` has the labels
    of the models that differ. If the model itself fails, `given` is None."""

    branch: Branch
    problem: str = ""
    wrong: tuple[str, ...] = ()
    given: Results | None = None


def settings(sites: Sequence[Site], switched: Sequence[int], branch: Branch) -> dict[str, Any]:
    """Values of the switches of `instrument` that lead into `branch` through the Ifs around it."""
    index, wanted = branch
    chosen = {site: OWN for site in switched}
    chosen |= {parent: int(taken) for parent, taken in sites[index].parents}
    chosen[index] = int(wanted)
    return {sites[site].switch: np.array(value, np.int32) for site, value in chosen.items()}


def to_switch(sites: Sequence[Site], branches: Sequence[Branch]) -> list[int]:
    """The sites that need a switch to force these branches: their Ifs and the Ifs around them."""
    needed = {index for index, _ in branches}
    for index, _ in branches:
        needed |= {parent for parent, _ in sites[index].parents}
    return sorted(needed)


def steered_sites(sites: Sequence[Site], switched: Collection[int]) -> list[Site]:
    """The sites that are watched if the `switched` sites are forced: all Ifs, and switched
    Loops."""
    return [site for site in sites if not site.loop or site.index in switched]


def force(
    sites: Sequence[Site],
    branches: Sequence[Branch],
    first: Session,
    others: Sequence[tuple[str, Session]],
    feeds: Sequence[dict[str, Any]],
    taken: Sequence[Set[Branch]],
    differences: Callable[[Session, Results, Results, Results], str],
    tell: Callable[[str], None] = lambda text: None,
) -> list[Forced]:
    """Force each of `branches` in models that have switches.

    `first` has to run the branch with one of `feeds`. `taken` has the branches that each feed takes
    without switches. `differences` gets a session, an input, the outputs of `first` and the
    session's outputs. It says how the outputs differ, "" if they agree. `tell` is called with the
    progress.
    """
    switched = to_switch(sites, branches)
    watched = steered_sites(sites, switched)
    results: list[Forced] = []
    waiting: list[tuple[Branch, Results, Results]] = []
    size = 0
    for number, branch in enumerate(branches):
        tell(f"forcing branch {number + 1} of {len(branches)}")
        site = sites[branch[0]]
        problem = ""
        # The nearest feeds come first. If all feeds fail, the failure of the first is the reason.
        nearest = sorted(
            range(len(feeds)), key=lambda place: -len(taken[place] & set(site.parents))
        )
        for place in nearest:
            given = {**feeds[place], **settings(sites, switched, branch)}
            try:
                outputs = first.run(given)
            except EngineError as error:
                problem = problem or f"the model itself fails there: {error}"
                continue
            if branch in all_taken(outputs, watched):
                waiting.append((branch, given, outputs))
                size += sum(getattr(value, "nbytes", 0) for value in outputs.values())
                break
            problem = problem or "the body around it never ran"
        else:
            results.append(Forced(branch, problem or "there is no input to try it with"))
        if size > _HELD:
            results += _held_to(sites, others, waiting, differences)
            waiting, size = [], 0
    return results + _held_to(sites, others, waiting, differences)


_HELD = 1 << 26  # bytes of outputs that wait to be compared


def _held_to(
    sites: Sequence[Site],
    others: Sequence[tuple[str, Session]],
    waiting: Sequence[tuple[Branch, Results, Results]],
    differences: Callable[[Session, Results, Results, Results], str],
) -> list[Forced]:
    """The results of running the other models as the first model was run. `waiting` has branches,
    with the inputs and outputs of the first model.

    A failure with a forced number of iterations does not count as a difference: no input may ever
    lead to that number."""
    wrong: dict[Branch, dict[str, str]] = {branch: {} for branch, _, _ in waiting}
    failed: dict[Branch, list[str]] = {branch: [] for branch in wrong}
    for label, session in others:
        actual = run_each(session, [given for _, given, _ in waiting])
        for (branch, given, expected), outputs in zip(waiting, actual, strict=True):
            if not isinstance(outputs, EngineError):
                found = differences(session, given, expected, outputs)
            elif sites[branch[0]].loop:
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
        for branch, given, _ in waiting
    ]
