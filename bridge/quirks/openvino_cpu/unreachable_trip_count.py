"""A trip count that is never reached: the CPU plugin reserves memory for as many stacked values."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node
from bridge.neutral.ports import Condition
from bridge.operators import Result
from bridge.operators.control.draft import Draft
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

NEVER = (1 << 31) - 1
"""A number of iterations that no Loop reaches."""


def without_limit(b: Builder, node: Node, place: Place) -> Result:
    """The Loop without its trip count, where a condition ends it."""
    trips = integers(node.trip_count)
    if not trips or trips[0] < NEVER:
        return None
    if not any(isinstance(exit, Condition) for exit in node.body.outputs):
        return None
    draft = Draft.of(node)
    draft.inputs[0] = None
    return draft.build(b)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A Loop with the trip count 2^63-1 asks for memory for as many stacked values.",
    cost="none: the trip count goes",
    run=rewriting("Loop", by=without_limit),
)
