"""One input of a Loop is not known before the model runs.

If all are known, the CPU plugin runs the Loop while it compiles the model. OpenVINO does so to find
the upper bound of a later result. Both fail. The plugin does not know a random number before it
runs, and OpenVINO does not evaluate a Bucketize.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.liveness import Needed, unneeded_inputs
from bridge.neutral.ports import Sliced
from bridge.neutral.types import I64, STRING
from bridge.operators.control.loop_builder import is_positive, scalar
from bridge.quirks.known import is_known
from bridge.quirks.opaque import opaque, undone, unknown_nothing
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[int | None]:
    """The input to hide, if OpenVINO knows all inputs: the trip count, or a sliced input. None
    stands for the first condition, if the Loop has neither."""
    node, place = draft.so_far, draft.place
    unread = unneeded_inputs(node, place.facts(Needed))
    if not all(is_known(v, place) for i, v in enumerate(node.inputs) if i not in unread):
        return []
    sliced = next((port.input for port in draft.body.inputs if isinstance(port, Sliced)), None)
    index = 0 if node.trip_count is not None else sliced
    value = None if index is None else node.inputs[index]
    unhidden = index is not None and (value is None or value.element in (None, STRING))
    return [] if unhidden else [index]


def give(draft: Draft, found: list[int | None]) -> None:
    """This input is hidden from OpenVINO."""
    (index,), b, inputs = found, draft.b, draft.loop.inputs
    value = None if index is None else inputs[index]
    if index is None or value is None:
        inputs[1] = _unknown_condition(b, inputs[1])
    else:
        inputs[index] = opaque(b, value, "content" if index else "number")


def _unknown_condition(b: Builder, condition: Value | None) -> Value:
    """A condition that OpenVINO does not know."""
    one = b.op("Add", b.constant(1, I64), unknown_nothing(b, 0))
    go = b.op("Greater", one, b.constant(0, I64))
    if condition is not None and not is_positive(condition):
        go = b.op("And", scalar(b, condition), go)
    return go


QUIRK = Clause(
    holds="One input of the Loop is not known before the model runs.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="OpenVINO runs a Loop of constants with a stack and an If while it compiles the model. "
    "It has no memory for this run.",
    fires="At a Loop, if OpenVINO knows all its inputs before the model runs.",
    safe="The trip count or a slice gets 0 added, or is the only row of a stack. A condition is "
    "joined with a true one.",
    cost="a 0 from a Bucketize of a random number below 1/2, for the trip count, a slice or the "
    "first condition",
    undo=undone("number", "content"),
)
