"""Quantised weights times a scale, where that or the zero point is computed: the CPU plugin
converts the weights once, and scales them in place at each inference."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F16
from bridge.operators import Result
from bridge.operators.builder_helpers import cast, unsqueeze
from bridge.quirks.known import Known, when_known
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

FEW_BITS = 8


def widened_twice(b: Builder, node: Node, place: Place) -> Result:
    """The weights by way of f16, which has all numbers of 8 bits and is folded. The scale has their
    rank: OpenVINO may take the one for the other."""
    (weights, scale), offset = node.inputs, None
    assert weights is not None and scale is not None
    if weights.producer is not None and weights.producer.op == "Sub":
        weights, offset = weights.producer.inputs
    narrow = _narrow(weights)
    given = [value for value in (scale, offset) if value is not None]
    if narrow is None or weights is None:
        return None
    if all(when_known(value, place) <= Known.COMPUTED for value in given):
        return None
    wide = cast(b, cast(b, narrow, F16), weights.element)
    scale = unsqueeze(b, scale, *range((narrow.rank or 0) - (scale.rank or 0)))
    return b.op("Mul", wide if offset is None else b.op("Sub", wide, offset), scale)


def _narrow(value: Value | None) -> Value | None:
    """The constant of 8 bits or fewer that a value is converted from, None where it is not."""
    if value is None or value.producer is None or value.producer.op != "Cast":
        return None
    source = value.producer.inputs[0]
    if source is None or source.constant is None or source.constant.element.bits > FEW_BITS:
        return None
    return source


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A constant of 8 bits or fewer, converted, less a zero point and times a scale, of "
    "which one is computed, is scaled again at each inference.",
    cost="a Convert, and memory for the constant in f32",
    run=rewriting("Mul", by=widened_twice),
)
