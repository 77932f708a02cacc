"""What inputs are sought for a check, and what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bridge.check.engines import Session
from bridge.check.inputs.calls import States
from bridge.check.inputs.own import InputSet
from bridge.check.inputs.probe import Probes
from bridge.check.inputs.recipe import Case, Recipe
from bridge.check.inputs.sizes import Demands
from bridge.check.surgery.sites import Branch, Site
from bridge.check.surgery.situations import Situation
from bridge.neutral.graph import Model


@dataclass(frozen=True)
class Inputs:
    """The inputs of a check.

    `reached` has the number of each branch's first case. `unreachable` says why no input takes a
    branch, if the reason is known: in the `failing` ones the model itself fails. `refused` counts
    the engine's messages for inputs that the model refused. `failures` say which of the user's
    inputs the model refused, and why. `row` has the numbers of the cases that are calls in a row,
    `no_row` says why there are none. `tried` is the number of inputs that were tried. `cut_short`
    is set if the search was too long, `endless` if a run took too long and was stopped.
    `most_iterations` has the most that each Loop ran, by its site; `largest_size` is the largest
    size of an open dimension. Of the `situations` those that were `met` have the number of their
    first case.
    """

    cases: tuple[Case, ...] = ()
    reached: Mapping[Branch, int] = field(default_factory=dict)
    unreachable: Mapping[Branch, str] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    row: tuple[int, ...] = ()
    no_row: str = ""
    tried: int = 0
    cut_short: bool = False
    endless: bool = False
    most_iterations: Mapping[int, int] = field(default_factory=dict)
    largest_size: int = 0
    situations: Sequence[Situation] = ()
    met: Mapping[int, int] = field(default_factory=dict)
    failing: frozenset[Branch] = frozenset()

    @property
    def unmet(self) -> list[Situation]:
        """The situations that no input met."""
        return [one for number, one in enumerate(self.situations) if number not in self.met]

    def only(self, places: Sequence[int]) -> Inputs:
        """These cases alone."""
        number = {place: index for index, place in enumerate(places)}
        row = tuple(number[place] for place in self.row if place in number)
        cases = tuple(self.cases[place] for place in places)
        reached = dict[Branch, int]()
        for place, case in enumerate(cases):
            for branch in sorted(case.taken):
                reached.setdefault(branch, place)
        met = {n: number[place] for n, place in self.met.items() if place in number}
        return replace(self, cases=cases, reached=reached, row=row, met=met)


@dataclass(frozen=True)
class Wanted:
    """What inputs are sought.

    `model` is the graph without additions, `demands` are those of its sizes. `session` runs it,
    with an output for the `sites` (see `Surgery.watch`). There are to be `samples` drawn inputs,
    `budget` limits how many are tried for them; if there are to be none, only the user's inputs
    `own` are tried. A model with `states` gets calls in a row. If `alone` runs a longer row than
    `session`, that row is taken. A `quick` search ends with the samples. `tell` is called with the
    progress. `twin` is the other file: what it compares with counts, too. `situations` are those
    that `session` measures.
    """

    model: Model
    demands: Demands
    session: Session
    base: Recipe
    samples: int
    budget: int
    sites: Sequence[Site] = ()
    probes: Probes = lambda site: None
    own: Sequence[InputSet] = ()
    states: States | None = None
    alone: Session | None = None
    quick: bool = False
    twin: Model | None = None
    situations: Sequence[Situation] = ()
    tell: Callable[[str], None] = lambda text: None
