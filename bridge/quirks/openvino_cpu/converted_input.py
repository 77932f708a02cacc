"""An output of the model that is an input of open shape, converted to its own type."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BF16, F32, I8, I32, U8, is_static
from bridge.operators import Result
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting

AS_THEY_ARE = {BF16, F32, I8, I32, U8}
"""Types that the plugin stores and returns unchanged."""

CONVERSIONS = ("Cast", "CastLike")


def kept(b: Builder, node: Node, place: Place) -> Result:
    """The value in memory of its own."""
    (value,) = node.outputs
    if place.holder is not None or value not in place.graph.outputs or is_static(value.shape):
        return None
    source, ops = _converted(value)
    if source not in place.graph.inputs or source.element is not value.element:
        return None
    if value.element not in AS_THEY_ARE or ops.isdisjoint(CONVERSIONS):
        return None
    return opaque(b, b.op(node.op, *node.inputs, **node.attributes), "memory")


def _converted(value: Value) -> tuple[Value, set[str]]:
    """The value before conversions, and the operators between. A Reshape of the same rank may be
    between, because the plugin removes it if it keeps the shape."""
    ops: set[str] = set()
    while (made := value.producer) is not None and made.op in (*CONVERSIONS, "Reshape"):
        source = made.inputs[0]
        assert source is not None
        if source.rank != value.rank:
            break
        ops.add(made.op)
        value = source
    return value, ops


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Convert of an input to its own type, perhaps through another type, is removed. If "
    "the result is an output of open shape, OpenVINO writes it into memory that is too small or "
    "freed, and crashes.",
    fires="At an output of open shape that comes from an input of the same type through Casts, and "
    "perhaps Reshapes of the same rank. The copy of an input for an output of another name is such "
    "a Cast.",
    safe="The maximum of a value with itself is the value.",
    cost="a maximum of each such output with itself",
    run=rewriting(*CONVERSIONS, "Reshape", by=kept),
    undo=undone("memory"),
)
