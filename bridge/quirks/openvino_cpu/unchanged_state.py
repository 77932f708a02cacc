"""A state that stays what it was at first: OpenVINO fails where the next value is the initial one
by another way."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.operators.control.unchanged import no_state
from bridge.quirks.quirk import Place, Quirk, rewriting


def captured(b: Builder, node: Node, place: Place) -> Result:
    """The state as a value that is the same in each iteration."""
    return no_state(b, node)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop's state whose next value is its initial one, captured by another way, is not "
    "read.",
    fires="At a state whose next value is itself or its initial value.",
    safe="Such a state is its initial value in every iteration, and behind the Loop.",
    cost="none: the state goes",
    run=rewriting("Loop", by=captured),
)
