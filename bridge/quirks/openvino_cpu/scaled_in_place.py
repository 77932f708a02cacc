"""Quantised weights times a scale, if the scale or the zero point is computed. The CPU plugin
converts the weights once, and scales them in place at each inference."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import (
    F4E2M1,
    F8E4M3FN,
    F8E5M2,
    F16,
    I2,
    I4,
    I8,
    U1,
    U2,
    U3,
    U4,
    U6,
    U8,
)
from bridge.operators import Result
from bridge.quirks.known import KnownAt, when_known
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind

EXACT = frozenset({F4E2M1, F8E4M3FN, F8E5M2, I2, I4, I8, U1, U2, U3, U4, U6, U8})
"""The types of 8 bits or fewer with no numbers outside f16. f16 lacks numbers of nf4 and f8e8m0."""


def widened_twice(b: Builder, node: Node, place: Place) -> Result:
    """The weights converted through f16, which has all numbers of these types. OpenVINO folds this
    conversion.

    The scale gets the rank of the weights, because OpenVINO may confuse the two.
    """
    (weights, scale), offset = node.inputs, None
    assert weights is not None and scale is not None
    if weights.producer is not None and weights.producer.op == "Sub":
        weights, offset = weights.producer.inputs
    narrow = _narrow(weights)
    given = [value for value in (scale, offset) if value is not None]
    if narrow is None or weights is None:
        return None
    if all(when_known(value, place) <= KnownAt.COMPUTED for value in given):
        return None
    wide = b.cast(b.cast(narrow, F16), weights.element)
    scale = b.unsqueeze(scale, *range((narrow.rank or 0) - (scale.rank or 0)))
    return (wide if offset is None else wide - offset) * scale


def _narrow(value: Value | None) -> Value | None:
    """The constant of an exact type before its conversion to a value; None without such a
    constant."""
    if value is None or value.producer is None or value.producer.op != "Cast":
        return None
    source = value.producer.inputs[0]
    if source is None or source.element not in EXACT or source.behind("Cast").constant is None:
        return None
    return source


def _scaled(b: Builder, node: Node) -> Iterator[Value]:
    """The weights converted once, minus the zero point, times the scale."""
    weights, scale = node.inputs
    less = weights.producer if weights is not None else None
    first = less.inputs[0] if less is not None and less.op == "Sub" else weights
    again = behind(first, "Cast")
    once = behind(again.inputs[0], "Cast") if again is not None else None
    if once is None or again is None or weights is None or scale is None:
        return
    wide = b.op("Cast", once.inputs[0], **again.attributes)
    if less is not None and less.op == "Sub":
        wide -= less.inputs[1]
    yield wide * scale.behind("Unsqueeze")


QUIRK = Quirk(
    releases="2026.4",
    symptom="A constant of 8 bits or fewer is scaled again at each inference. This happens if it "
    "is converted, and its scale or its zero point is computed.",
    fires="At a Mul of a converted constant of 8 bits or fewer, perhaps minus a zero point, if the "
    "scale or the zero point is computed.",
    safe="f16 has all numbers of these types. So the conversion through f16 changes none.",
    cost="a Convert, and memory for the constant in f32",
    run=rewriting("Mul", by=widened_twice),
    guess={"Mul": _scaled},
)
