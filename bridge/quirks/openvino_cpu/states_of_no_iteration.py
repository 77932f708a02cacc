"""What a Loop gives where no iteration runs: old releases of the CPU plugin leave what the run
before gave, states and stacks alike. So the Loop goes into a branch of an If, whose other branch
gives what went in."""

from __future__ import annotations

from bridge.quirks.guarded_loops import UNDO, in_a_branch
from bridge.quirks.quirk import Quirk, rewriting

QUIRK = Quirk(
    releases="2024.0 to 2026.3",
    symptom="Where a Loop runs no iteration, its states and stacks are those of the inference "
    "before.",
    fires="At a Loop that may not run.",
    safe="One branch is the Loop where it runs; the other gives what a Loop gives that does not.",
    cost="An If around each Loop that may not run. Only for those releases.",
    run=rewriting("Loop", by=in_a_branch),
    undo=UNDO,
)
