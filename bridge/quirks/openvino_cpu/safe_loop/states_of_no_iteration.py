"""A Loop that may run no iteration stands in an If that tests whether it runs.

Old releases of the CPU plugin give the states and stacks of the inference before, if no iteration
runs. The other branch of the If gives the initial states, and empty stacks.
"""

from __future__ import annotations

from bridge.quirks.guarded_loops import UNDO
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[Draft]:
    """The Loop, if it may run no iteration, and no such If is around it."""
    return [draft] if draft.may_be_guarded else []


def give(draft: Draft, found: list[Draft]) -> None:
    """The Loop goes into an If."""
    draft.wants_guard = True


QUIRK = Clause(
    holds="A Loop that may run no iteration stands in an If that tests whether it runs.",
    lacks=lacks,
    give=give,
    releases="2024.0 to 2026.3",
    symptom="If a Loop runs no iteration, its states and stacks are those of the inference before.",
    fires="At a Loop that may run no iteration.",
    safe="If the Loop runs, the If takes the branch with the Loop. The other branch gives the "
    "outputs of a Loop without an iteration.",
    cost="an If around each Loop that may run no iteration. Only for those releases.",
    undo=UNDO,
)
