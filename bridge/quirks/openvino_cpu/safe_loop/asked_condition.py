"""The first condition of a Loop is tested when the model runs.

If OpenVINO finds earlier that the condition is false, it takes each output for an empty vector.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition, outer_input
from bridge.operators.control.loop_builder import LoopBuilder, is_positive, scalar
from bridge.passes.uses import Uses
from bridge.quirks.guarded_loops import in_the_place_of
from bridge.quirks.known import is_known
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[Value]:
    """The first condition, if OpenVINO may find it to be false, and a trip count is there."""
    trips, condition = draft.loop.inputs[:2]
    if trips is None or condition is None or is_positive(condition):
        return []
    return [condition] if is_known(condition, draft.place) and not _is_state(draft.node) else []


def give(draft: Draft, found: list[Value]) -> None:
    """The trip count is 0 if the condition is false."""
    b, inputs, trips = draft.b, draft.loop.inputs, draft.loop.trip_count
    assert trips is not None
    count = b.op("Where", scalar(b, found[0]), scalar(b, trips), 0)
    # OpenVINO fails if it finds this to be 0, too.
    inputs[:2] = [opaque(b, count, "number"), None]


def _is_state(node: Node) -> bool:
    """Whether a state starts with the trip count or the condition."""
    states = [port for port in node.body.inputs if isinstance(port, Carried)]
    found = {p.input for p in states if not isinstance(node.body.exit_of(p)[1], Condition)}
    return not found.isdisjoint({0, 1})


def count_and_condition(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The trip count and the condition, from a count that is 0 if the condition is false."""
    trips, condition = node.trip_count, node.condition
    made = trips.producer if trips is not None else None
    if made is None or made.op != "Where" or known_of(made.inputs[2]).ints != (0,):
        return None
    told = condition is not None and known_of(condition).ints != (1,)
    if told or any(outer_input(port) in (0, 1) for port in node.body.inputs):
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.inputs[:2] = [made.inputs[1], made.inputs[0]]
    return in_the_place_of(node, loop_builder.build(b), uses)


QUIRK = Clause(
    holds="The first condition is tested when the model runs.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="If OpenVINO finds that the first condition of a Loop is false, the outputs are f32[0] "
    "for any states.",
    fires="At a Loop with a trip count, if OpenVINO knows the first condition and it is not surely "
    "true.",
    safe="A Loop runs no iteration if its trip count is 0 or its condition is false. No iteration "
    "reads either.",
    cost="a Select outside the body, and a 0 from a Bucketize of a random number below 1/2",
    undo={"Loop": count_and_condition, **undone("number")},
)
