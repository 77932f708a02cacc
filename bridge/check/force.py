"""Which branches are forced, and what comes of it: the switches of models with switches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.check.instrument import OWN, Branch, Site
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
