"""A trip count that is never reached: the CPU plugin reserves memory for as many stacked values."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.operators.control.endless import without_limit
from bridge.quirks.quirk import Place, Quirk, rewriting


def unlimited(b: Builder, node: Node, place: Place) -> Result:
    """The Loop without its trip count, where a condition ends it."""
    return without_limit(b, node)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop with the trip count 2^63-1 asks for memory for as many stacked values.",
    fires="At a Loop with a condition and a trip count of 2^31-1 or more.",
    safe="No Loop runs so many iterations: the condition alone ends it.",
    cost="none: the trip count goes",
    run=rewriting("Loop", by=unlimited),
)
