"""A TensorIterator inside a TensorIterator's body: OpenVINO does not read it, nor what becomes one
when it is compiled."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, loop_kind
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, trips_of_slices, turn_forwards
from bridge.quirks.quirk import Place, Quirk, rewriting

SEQUENCES = {"GRUSequence", "LSTMSequence", "RNNSequence"}
"""Operators that OpenVINO turns into TensorIterators."""


def counted(b: Builder, node: Node, place: Place) -> Result:
    """The inner one as a Loop with a trip count, which reads forwards; the outer one, where the
    inner is an operator on sequences."""
    if loop_kind(node) == "count":
        return None
    if not _in_iterator(place) and all(n.op not in SEQUENCES for n in node.body.graph.walk()):
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.inputs[0] = trips_of_slices(b, loop_builder.inputs, loop_builder.body)
    turn_forwards(b, loop_builder)
    return loop_builder.build(b)


def _in_iterator(place: Place) -> bool:
    """Whether a place is inside a TensorIterator, at any depth."""
    holder, outer = place.holder, place.outer
    if holder is None or outer is None:
        return False
    return (holder.op == "Loop" and loop_kind(holder) != "count") or _in_iterator(outer)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A TensorIterator in another's body is refused: No nested TensorIterator.",
    fires="At a TensorIterator in the body of another, or around a layer that becomes one.",
    safe="It runs as often as its slices have parts; what is read backwards is reversed and read "
    "forwards.",
    cost="a trip count, computed from a shape, and a reversal of what is read backwards",
    run=rewriting("Loop", by=counted),
)
