"""An output of the model that is an input of open shape, converted to the type that it has."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BF16, F32, I8, I32, U8, is_static
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

AS_THEY_ARE = {BF16, F32, I8, I32, U8}
"""Types that the plugin neither stores nor returns in another."""

CONVERSIONS = ("Cast", "CastLike")


def kept(b: Builder, node: Node, place: Place) -> Result:
    """A Concat of this value alone, which the plugin does not take away."""
    (value,) = node.outputs
    if place.holder is not None or value not in place.graph.outputs or is_static(value.shape):
        return None
    source = _converted(value)
    if source not in place.graph.inputs or source.element is not value.element:
        return None
    if value.element not in AS_THEY_ARE:
        return None
    converted = b.op(node.op, *node.inputs, **node.attributes)
    return b.op("Concat", converted, axis=0)


def _converted(value: Value) -> Value:
    """What a value is that conversions make."""
    while value.producer is not None and value.producer.op in CONVERSIONS:
        (source, *_) = value.producer.inputs
        assert source is not None
        value = source
    return value


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A Convert of an input to the type that it has, by way of another too, is taken away; "
    "where it is an output of open shape, it is written into memory that is too small or no longer "
    "there, which ends the process.",
    fires="At an output of the model of open shape that an input of its type becomes by Casts "
    "alone.",
    safe="A Concat of one value is the value.",
    cost="a Concat of one value, which copies it",
    run=rewriting(*CONVERSIONS, by=kept),
)
