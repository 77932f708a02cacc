"""Arithmetic on 8 bits, which saturates, and rounds quotients where shapes are dynamic."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import I8, I32, U8
from bridge.operators import Result
from bridge.operators.builder_helpers import cast
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def in_32_bits(b: Builder, node: Node, place: Place) -> Result:
    """The same in 32 bits, of which the conversion back takes the last 8."""
    x, y = node.inputs
    assert x is not None and y is not None
    if x.element not in (I8, U8):
        return None
    return cast(b, b.op(node.op, cast(b, x, I32), cast(b, y, I32), **node.attributes), x.element)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="200 + 100 is 255 in u8, and 7 / 2 is 4 where the shape is dynamic.",
    cost="three Converts",
    run=rewriting("Add", "Div", "Mul", "Sub", by=in_32_bits),
)
