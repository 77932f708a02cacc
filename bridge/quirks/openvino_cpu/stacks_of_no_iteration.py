"""Stacks where no iteration runs: the CPU plugin gives those of the run before, or as many parts as
the trip count says, and takes sizes that it does not know from nowhere. Of a first condition that
it can tell to be false, OpenVINO takes all that comes out for vectors of nothing. So the Loop goes
into a branch of an If, whose other branch gives what went in, and stacks of nothing."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Condition, Stacked
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, constant_condition, is_positive
from bridge.passes.uses import Uses
from bridge.quirks.guarded_loops import UNDO, in_a_branch, in_the_place_of
from bridge.quirks.known import is_known
from bridge.quirks.quirk import Place, Quirk, rewriting


def stacked_in_a_branch(b: Builder, node: Node, place: Place) -> Result:
    """A Loop that stacks, or whose first condition is known, in a branch."""
    stacks = any(isinstance(exit, Stacked) for exit in node.body.outputs)
    told = node.condition is not None and not is_positive(node.condition)
    if not stacks and not (told and is_known(node.condition, place)):
        return None
    return in_a_branch(b, node, place)


def named_condition(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Loop whose condition stays true. All true conditions have one name. Without a trip count
    the Loop would have no end that can be seen."""
    found = [
        index
        for index, (value, exit) in enumerate(node.body.exits())
        if isinstance(exit, Condition) and value.constant is not None and integers(value) == (1,)
    ]
    if not found or node.trip_count is None or node.body.graph.outputs[found[0]].name == "always":
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.body.graph.outputs[found[0]] = constant_condition(loop_builder.inside(b))
    return in_the_place_of(node, loop_builder.build(b), uses)


QUIRK = Quirk(
    releases="2026.4",
    symptom="Where a Loop runs no iteration, what it stacks has the parts of the inference before, "
    "and its open sizes; where these are bounded from below, the first inference fails. A Loop "
    "whose first condition is found to be false has outputs f32[0], whatever the states are.",
    fires="At a Loop that may not run and stacks, or whose first condition OpenVINO knows, outside "
    "of an If that asks whether it runs.",
    safe="One branch is the Loop where it runs; the other gives what a Loop gives that does not.",
    cost="an If around such a Loop",
    run=rewriting("Loop", by=stacked_in_a_branch),
    undo={**UNDO, "Loop": named_condition},
)
