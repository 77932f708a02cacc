"""Seeks inputs that take each branch of every If, and run each Loop never, once, and often.

The search for a branch starts from the conditions on the way to it (`probe`), whose distance is a
goal of the solver.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from bridge.check.engines import Session
from bridge.check.inputs.drawn import SMALL
from bridge.check.inputs.probe import Probe
from bridge.check.inputs.recipe import Recipe
from bridge.check.inputs.running import Search, work_of
from bridge.check.inputs.solver import Goal, Variable, solve
from bridge.check.surgery.sites import Branch, Site
from bridge.errors import BridgeError

_SEEDS = 6  # seeds for each input that leads to a branch
_ATTEMPTS = 16  # refused inputs that lead to a branch, then the search for it stops
_SOLVED = 4  # the last recipes found for other branches, from which a search starts
_TRIES = 400  # recipes for one branch
_SIZES = tuple(1 << k for k in (7, 8, 9, 6, 5, 10, 4, 3, 2, 1, 0))


def aim(search: Search, outermost: bool = False) -> None:
    """Seeks inputs for each branch that no input has reached, from the outermost Ifs inwards.

    The model may refuse an input because of an operator further in, or because of a size that the
    branch does not depend on. A later search may then reach the branch."""
    if search.endless and not search.cases:  # Each further run would take as long again.
        return
    hopeless: set[Branch] = set()
    for site in search.all.sites:
        open = [outcome for outcome in site.outcomes if (site.index, outcome) in search.missing]
        if not open or search.over() or not hopeless.isdisjoint(site.parents):
            continue
        if outermost and (site.parents or (search.all.quick and search.lacking <= 0)):
            continue
        found = search.all.probes(site)
        if found is None:
            continue
        for outcome in open:
            if (site.index, outcome) in search.missing:  # still
                solved, why = _aim(search, site, outcome, *found)
                if why:
                    search.failing[site.index, outcome] = why
                around = site.parents[-1] in search.reached if site.parents else search.cases
                if not solved or (why and around):
                    hopeless.add((site.index, outcome))


def _aim(
    search: Search, site: Site, outcome: int, probe: Probe, opened: Callable[[], Session]
) -> tuple[bool, str]:
    """Seeks an input for one outcome. Says whether any input leads there, and why the model refuses
    such inputs."""
    branch = site.index, outcome
    if outcome in probe.settled and not probe.never:
        search.unreachable[branch] = probe.settled[outcome]
        search.missing.discard(branch)
    if probe.never or outcome in probe.settled or outcome not in probe.own:
        return False, ""
    work = work_of(probe.model)

    def distances(recipe: Recipe) -> tuple[float, ...]:
        if search.over(work):
            return ()
        numbers = {name: np.array(recipe.fills.get(name, 0), np.int64) for name in probe.iterations}
        try:
            return probe.distances(outcome, opened().run({**search.make(recipe), **numbers}))
        except BridgeError:  # of a probe that no engine loads, too
            return ()

    known = [*site.parents[-1:], *((site.index, other) for other in site.outcomes)]
    near = [search.cases[search.reached[b]].recipe for b in known if b in search.reached]
    starts = [*near, *(replace(search.start, seed=search.start.seed + k) for k in range(3))]
    wanted = [search.variables(asked) for asked in probe.asked(outcome)]
    goal = Goal(distances, wanted, min(_TRIES, search.share(work)))
    recipe, far = solve(goal, [*starts, *(one for one, *_ in search.solved[-_SOLVED:])])
    if far:
        if not wanted[-1] and any(distances(search.start)[-1:]):
            what = "the Loop runs as often" if site.loop else "the condition is the same"
            search.unreachable[branch] = f"{what} with all inputs"
            search.missing.discard(branch)
        return False, ""
    asked = [own for some in wanted for own in some]
    for one, its, why in search.solved:
        if one is recipe and its == asked:
            return True, why
    met = (r for r in _like(search, recipe, asked) if r is recipe or not any(distances(r) or (1,)))
    why = _refused(search, met)
    search.solved.append((recipe, asked, why))
    return True, why


def _refused(search: Search, recipes: Iterator[Recipe]) -> str:
    """The most frequent reason why the model refuses the first of these inputs, "" if the model
    takes one of them."""
    whys: list[str] = []
    for recipe in islice(recipes, _ATTEMPTS):
        whys += search.run([recipe])
        if not whys[-1]:
            return ""
    return max(whys, key=whys.count, default="")


def _like(search: Search, recipe: Recipe, asked: Sequence[Variable]) -> Iterator[Recipe]:
    """The recipe, then the recipe with small numbers, with other seeds, and with other sizes than
    those that were asked for."""
    yield recipe
    for one in asked:
        small = (one.put(recipe, number) for number in SMALL if not one.is_size)
        yield from (other for other in small if other is not None)
    for seed in range(1, _SEEDS):
        yield replace(recipe, seed=recipe.seed + seed)
    keys = search.open.keys() - search.base.sizes.keys() - {one.key for one in asked}
    for number in _SIZES:
        for key in sorted(keys):
            yield replace(recipe, sizes={**recipe.sizes, key: number})
