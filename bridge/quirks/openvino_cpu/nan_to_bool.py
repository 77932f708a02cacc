"""A conversion of NaN to bool. The CPU plugin gives false, so an If takes its else branch."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BF16, BOOL, F16, F32, F64
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

FLOATS = {BF16, F16, F32, F64}
"""Types that hold NaN and that the plugin compares."""


def compared(b: Builder, node: Node, place: Place) -> Result:
    """A comparison with 0 instead of the conversion."""
    value = node.inputs[0]
    if node.attributes["to"] is not BOOL or not isinstance(value, Value):
        return None
    return b.op("NotEqual", value, 0) if value.element in FLOATS else None


def _converted(b: Builder, node: Node) -> Iterator[Value]:
    value, zero = node.inputs[0], known_of(node.inputs[1]).array
    if value is not None and zero is not None and zero.ndim == 0 and zero == 0:
        yield b.op("Cast", value, to=BOOL)


QUIRK = Quirk(
    releases="2026.4",
    symptom="NaN converted to bool is false, so an If takes its else branch.",
    fires="At a Cast of a float to bool.",
    safe="Both operators give true for all numbers but 0, and for NaN.",
    cost="none: a NotEqual for a Convert",
    run=rewriting("Cast", by=compared),
    guess={"NotEqual": _converted},
)
