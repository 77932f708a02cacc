"""A state that starts with a size that is known, or bounded, and changes it: old releases of
OpenVINO take the sizes of the first iterations for those of all."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried
from bridge.neutral.types import I64, Interval, high
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, scalar
from bridge.quirks.opaque import opaque, undone, unknown_nothing
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_hidden_size(b: Builder, node: Node, place: Place) -> Result:
    """The sizes that change are hidden from OpenVINO before the Loop."""
    loop_builder = LoopBuilder.of(node)
    number: Value | None = None
    for value, port in loop_builder.body.entries():
        initial = loop_builder.initial(port) if isinstance(port, Carried) else None
        if not isinstance(port, Carried) or port.input is None or initial is None:
            continue
        axes = _known_and_changing(initial, value)
        if axes:
            number = number or _number(b, node.trip_count)
            loop_builder.inputs[port.input] = opaque(b, initial, "bounds", axes, number)
    return None if number is None else loop_builder.build(b)


def _known_and_changing(initial: Value, state: Value) -> list[int]:
    if initial.rank is None or initial.rank != state.rank:
        return []
    sizes = enumerate(zip(initial.dims, state.dims, strict=True))
    return [
        axis
        for axis, (first, any) in sizes
        if isinstance(any, Interval) and high(first) is not None
    ]


def _number(b: Builder, trips: Value | None) -> Value:
    """A number that OpenVINO does not know; i64, of rank 1."""
    if trips is None or trips.constant is not None:
        return unknown_nothing(b)
    return b.op("Reshape", b.cast(scalar(b, trips), I64), [1])


QUIRK = Quirk(
    releases="2024.0 to 2026.2",
    symptom="A state that grows and whose initial size is known or bounded has no more than the "
    "first iterations give it, or does not run.",
    fires="At a state whose size changes along an axis of which the first size is known or "
    "bounded.",
    safe="A remainder by 1 is 0; padded by 0, a value stays what it is.",
    cost="A Pad of nothing before the Loop for each such state. Only for those releases.",
    run=rewriting("Loop", by=of_hidden_size),
    undo=undone("bounds"),
)
