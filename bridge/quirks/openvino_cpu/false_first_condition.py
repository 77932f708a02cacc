"""A condition that OpenVINO can tell to be false before the first iteration: it takes all that
comes out for vectors of nothing."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.operators.builder_helpers import cast
from bridge.operators.control.loop_builder import LoopBuilder, is_positive, scalar
from bridge.quirks.known import is_known, unknown_nothing
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def condition_as_trips(b: Builder, node: Node, place: Place) -> Result:
    """Nothing is left of the trip count where the condition is false."""
    trips, condition = node.trip_count, node.condition
    if trips is None or condition is None or is_positive(condition):
        return None
    count = b.op("Where", scalar(b, condition), scalar(b, trips), b.like(0, trips))
    if is_known(condition, place):  # OpenVINO fails where it finds the trip count to be 0, too
        count = b.op("Add", count, cast(b, unknown_nothing(b, 0), trips.element))
    loop_builder = LoopBuilder.of(node)
    loop_builder.inputs[0] = count
    loop_builder.inputs[1] = None
    return loop_builder.build(b)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A Loop whose first condition is found to be false has outputs f32[0], whatever the "
    "states are.",
    cost="a Select outside the body, and a random number where OpenVINO knows the condition",
    run=rewriting("Loop", by=condition_as_trips),
)
