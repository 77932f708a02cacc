"""No TensorIterator stands in the body of another one.

OpenVINO refuses it. It also refuses a layer in the body that it converts to a TensorIterator.
"""

from __future__ import annotations

from bridge.neutral.graph import loop_kind
from bridge.operators.control.loop_builder import trips_of_slices, turn_forwards
from bridge.quirks.quirk import Place
from bridge.quirks.safe_loop import Clause, Draft

SEQUENCES = {"GRUSequence", "LSTMSequence", "RNNSequence"}
"""Operators that OpenVINO turns into TensorIterators."""


def lacks(draft: Draft) -> list[str]:
    """The kind of the Loop, if it is a TensorIterator with another one around it or in it."""
    kind = draft.loop.kind
    if kind == "count":
        return []
    around = _in_iterator(draft.place) or any(n.op in SEQUENCES for n in draft.body.graph.walk())
    return [kind] if around else []


def give(draft: Draft, found: list[str]) -> None:
    """The Loop gets a trip count, and reads its slices forwards."""
    draft.loop.inputs[0] = trips_of_slices(draft.b, draft.loop.inputs, draft.body)
    turn_forwards(draft.b, draft.loop)


def _in_iterator(place: Place) -> bool:
    """Whether a place is inside a TensorIterator, at any depth."""
    holder, outer = place.holder, place.outer
    if holder is None or outer is None:
        return False
    return (holder.op == "Loop" and loop_kind(holder) != "count") or _in_iterator(outer)


QUIRK = Clause(
    holds="No TensorIterator stands in the body of another one.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="A TensorIterator in the body of another one is refused: No nested TensorIterator.",
    fires="At a TensorIterator in the body of another, or around a layer that becomes one.",
    safe="The trip count is the number of parts of its slices. A slice that is read backwards is "
    "reversed and read forwards.",
    cost="a trip count, computed from a shape, and a reversal of each slice that is read backwards",
)
