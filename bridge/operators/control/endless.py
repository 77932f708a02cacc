"""Trip counts too large for any Loop to reach."""

from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Condition
from bridge.operators import Builder, Node, Value
from bridge.operators.control.loop_builder import LoopBuilder

NEVER = (1 << 31) - 1
"""A number of iterations that no Loop reaches."""


def without_limit(b: Builder, node: Node) -> list[Value] | None:
    """A Loop without its trip count, if a condition ends the Loop and the trip count is never
    reached."""
    trips = known_of(node.trip_count).ints
    if not trips or trips[0] < NEVER:
        return None
    if not any(isinstance(exit, Condition) for exit in node.body.outputs):
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.inputs[0] = None
    return loop_builder.build(b)
