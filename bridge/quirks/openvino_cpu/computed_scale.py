"""A scale and a zero point that are computed from the data, as DynamicQuantizeLinear does. OpenVINO
multiplies by reciprocals, so the scale may be the next number of f32. The zero point may be off by
one, and then all elements are: it lies halfway between two integers if the data are symmetric.

The remainder of the division corrects both. Its products are exact in f32, because their factors
have few digits.

Only what a model gives as outputs is corrected. Integers that are multiplied and scaled again stay
as they are: which of two integers is the right one depends on the last digit of the data. The
correction of all would take 1 to 2 % of the time of a model, or up to 12 % if shapes are open. Such
a model would have twice the layers, and convert in one and a half times the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import F32
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.openvino_cpu.rounded_quotient import (
    DIGITS,
    corrected,
    is_number,
    is_shown,
    split,
)
from bridge.quirks.quirk import Place, Quirk, rewriting

MOST = 256
"""The largest quotient that is corrected. A zero point of 8 bits is smaller."""

RANGE = (op("Max").shared() - op("Min").shared()).shared()
LEVELS = constant(F32)
SCALE = RANGE / LEVELS

X, FACTOR = var(F32), constant(F32)
NEAR = (X * FACTOR).shared()
WIDE = (NEAR * constant(F32)).shared()
PART = (WIDE - (WIDE - NEAR)).shared()
EXACT = NEAR + (X - PART * LEVELS - (NEAR - PART) * LEVELS) * FACTOR

DIVISOR = var(F32)
QUOTIENT = X / DIVISOR
OPPOSITE = 0 - QUOTIENT
ZERO_POINT = op("Clip", OPPOSITE | QUOTIENT)

HALF = var(F32)
CORRECTED = HALF + (X - HALF * var() - HALF * var()) * (1 / DIVISOR).shared()
OPPOSITE_CORRECTED = 0 - CORRECTED
ZERO_POINT_CORRECTED = op("Clip", OPPOSITE_CORRECTED | CORRECTED)


def _once(value: Value) -> int:
    return 1


def exact(b: Builder, node: Node, place: Place) -> Result:
    """A range by the number of levels, or a rounded zero point."""
    made = _scale if node.op == "Div" else _zero_point
    return made(b, node, place)


def _scale(b: Builder, node: Node, place: Place) -> Value | None:
    if not is_shown(node.outputs[0], place):
        return None
    for found in SCALE.matches(node.outputs[0], Found(), _once):
        x, levels = found[RANGE], known_of(found[LEVELS]).array
        if not is_number(x) or levels is None or levels.size != 1:
            continue
        count = float(levels.reshape(()))
        if 1 < count < 2 ** (DIGITS // 2) and count % 1 == 0 and np.frexp(count)[0] != 0.5:
            factor = b.constant(np.float32(1 / count))
            near = x * factor
            part, rest = split(near, DIGITS // 2)
            return near + (x - part * found[LEVELS] - rest * found[LEVELS]) * factor
    return None


def _zero_point(b: Builder, node: Node, place: Place) -> Value | None:
    (limited,) = node.inputs
    for found in ZERO_POINT.matches(limited, Found(), _once):
        x, divisor = found[X], found[DIVISOR]
        if is_number(x) and is_number(divisor) and known_of(divisor).array is None:
            quotient = corrected(b, x, divisor, MOST, place)
            if quotient is not None:
                quotient = 0.0 - quotient if OPPOSITE in found else quotient
                return _rounded(b, node, quotient)
    return None


def _rounded(b: Builder, node: Node, quotient: Value) -> Value:
    """A quotient within the same limits, rounded in the same way."""
    assert node.inputs[0] is not None and node.inputs[0].producer is not None
    clipped = b.op("Clip", quotient, *node.inputs[0].producer.inputs[1:])
    return b.op("Round", clipped, **node.attributes)


def plain_scale(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The range by the number of levels."""
    for found in EXACT.matches(uses.output(node), Found(), _once):
        factor, levels = (known_of(found[term]).array for term in (FACTOR, LEVELS))
        if factor is not None and levels is not None and (factor == np.float32(1) / levels).all():
            return found[X] / found[LEVELS]
    return None


def _plain_zero_point(b: Builder, node: Node) -> Iterator[Value]:
    """The zero point before the correction."""
    for found in ZERO_POINT_CORRECTED.matches(node.inputs[0], Found(), _once):
        quotient = found[X] / found[DIVISOR]
        yield _rounded(b, node, 0.0 - quotient if OPPOSITE_CORRECTED in found else quotient)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A range divided by 255 is the product with a rounded reciprocal, and so is the least "
    "element by this scale. The scale of DynamicQuantizeLinear differs, and a zero point halfway "
    "between two integers goes to the wrong one.",
    fires="At the difference of a Max and a Min by a whole number, and at a Round of a limited "
    "quotient of f32 by it, if the scale is an output of the model. All of these have one element.",
    safe="An approximate quotient, and the remainder times the reciprocal, add up to the quotient. "
    "The remainder is exact, because each product has at most 24 digits.",
    cost="twenty operators of one element, which OpenVINO joins to one",
    run=rewriting("Div", "Round", by=exact),
    undo={"Add": plain_scale},
    guess={"Round": _plain_zero_point},
)
