"""A quotient that is rounded to an integer. OpenVINO multiplies by the reciprocal of the divisor,
so a quotient halfway between two integers may lie beside it.

The nearest half is taken for the quotient, and the remainder of the division corrects it. All
products of such a half and a part of the divisor are exact in f32.

OpenVINO folds quotients of constants exactly. A divisor that is computed is a scale that the model
gives as an output, see `computed_scale`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import F32, is_static, size_of
from bridge.operators import Result
from bridge.quirks.known import KnownAt, when_known
from bridge.quirks.quirk import Place, Quirk, rewriting

DIGITS = 24
"""The binary digits of an f32."""

MOST = 1 << 17
"""The largest quotient that is corrected."""

NORMAL = 2.0**-100, 2.0**100
"""The sizes of constant divisors. The parts of others may be no normal numbers."""

X, DIVISOR, OFFSET = var(F32), var(F32), var(F32)
ROUNDED = op("Round", X / DIVISOR, mode="half_to_even")
SHIFTED = ROUNDED + OFFSET

HALF, REMAINDER, RECIPROCAL = var(F32), var(F32), var(F32)
CORRECTED = op("Round", HALF + REMAINDER * RECIPROCAL)
CORRECTED_SHIFTED = CORRECTED + OFFSET


def _once(value: Value) -> int:
    return 1


def by_remainder(b: Builder, node: Node, place: Place) -> Result:
    """The limits of the rounded sum of a half and the remainder times the reciprocal."""
    y, *limits = node.inputs
    for pattern in (SHIFTED, ROUNDED):
        for found in pattern.matches(y, Found(), _once):
            most = _largest(limits, found.get(OFFSET))
            if most is None or when_known(found[X], place) is KnownAt.FOLDED:
                continue
            quotient = corrected(b, found[X], found[DIVISOR], most, place)
            if quotient is not None:
                rounded = b.op("Round", quotient)
                return b.op("Clip", b.plus(rounded, found.get(OFFSET)), *limits)
    return None


def _largest(limits: list[Value | None], offset: Value | None) -> int | None:
    """A bound of the quotients that are not limited. An unknown offset is taken for a zero point,
    which lies between the limits; other quotients are as exact as before."""
    ends = [known_of(limit).reals for limit in limits]
    if len(ends) != 2 or any(end is None or end.size != 1 for end in ends):
        return None
    low, high = (float(end.reshape(())) for end in ends if end is not None)
    known = known_of(offset).reals if offset is not None else np.zeros(1)
    offsets = (low, high) if known is None or not known.size else (known.min(), known.max())
    most = max(abs(low - offsets[1]), abs(high - offsets[0])) + 1
    return int(most) if most <= MOST else None


def corrected(b: Builder, x: Value, divisor: Value, most: int, place: Place) -> Value | None:
    """The quotient, whose size is at most `most` where it matters."""
    known = known_of(divisor).reals
    is_given = divisor.behind("Cast", "Reshape", "Unsqueeze").producer is None
    if known is None and not is_given and not is_shown(divisor, place):
        return None
    if known is not None and not _is_rounded(known):
        return None
    # Twice the half is an integer. A product with a part has no more digits than an f32.
    digits = DIGITS - (2 * most + 1).bit_length()
    if known is None:
        reciprocal = b.once((corrected, divisor), lambda: 1.0 / divisor)
    else:
        reciprocal = b.constant(np.float32(1) / known)
    near = b.op("Clip", x * reciprocal, -float(most), float(most))
    half = b.op("Floor", near) + 0.5
    parts: Iterable[Value | np.ndarray]
    if known is None:
        parts = b.once((split, divisor, digits), lambda: _computed_parts(divisor, digits))
    else:
        parts = _parts(known, digits)
    rest = x
    for part in parts:
        rest = rest - half * part
    return half + rest * reciprocal


def is_number(value: Value) -> bool:
    """Whether a value has one element."""
    return is_static(value.shape) and size_of(value.shape) == 1


def is_shown(scale: Value, place: Place) -> bool:
    """Whether a scale is one number that the model gives as an output."""
    if place.holder is not None or not is_number(scale):
        return False
    return any(place.of(output) is scale for output in place.graph.outputs)


def _is_rounded(divisor: np.ndarray) -> bool:
    """Whether the reciprocal of a constant is rounded, and its parts are normal numbers."""
    sizes = np.abs(divisor)
    normal = (sizes > NORMAL[0]) & (sizes < NORMAL[1])
    return bool(normal.all() and (np.frexp(sizes)[0] != 0.5).any())


def _parts(divisor: np.ndarray, digits: int) -> Iterator[np.ndarray]:
    """Numbers of few digits whose sum is the divisor."""
    rest = divisor
    while rest.any():
        mantissas, exponents = np.frexp(rest)
        part = np.ldexp(np.trunc(np.ldexp(mantissas, digits)), exponents - digits)
        yield part
        rest = rest - part


def _computed_parts(divisor: Value, digits: int) -> list[Value]:
    """Such numbers for a divisor that is not known."""
    parts, rest = [], divisor
    for _ in range(digits, DIGITS, digits):
        part, rest = split(rest, digits)
        parts.append(part)
    return [*parts, rest]


def split(x: Value, digits: int) -> tuple[Value, Value]:
    """Two numbers whose sum is x, the first of so many digits (Veltkamp's splitting)."""
    wide = x * float(2 ** (DIGITS - digits) + 1)
    part = wide - (wide - x)
    return part, x - part


def _divided(b: Builder, node: Node) -> Iterator[Value]:
    """The rounded quotient before the correction."""
    y, *limits = node.inputs
    for pattern in (CORRECTED_SHIFTED, CORRECTED):
        for found in pattern.matches(y, Found(), _once):
            x, parts = _dividend(found[REMAINDER], found[HALF])
            reciprocal = found[RECIPROCAL]
            divisor: Value | None = None
            if reciprocal.producer is not None and reciprocal.producer.op == "Div":
                divisor = reciprocal.producer.inputs[1]
            elif parts and all(part is not None for part in parts):
                divisor = b.constant(np.sum(parts, axis=0, dtype=np.float32))  # type: ignore[arg-type]
            if x is None or divisor is None:
                continue
            rounded = b.op("Round", b.op("Div", x, divisor))
            yield b.op("Clip", b.plus(rounded, found.get(OFFSET)), *limits)


def _dividend(rest: Value, half: Value) -> tuple[Value | None, list[np.ndarray | None]]:
    """The value from which products with a half are subtracted, and the other factors."""
    parts: list[np.ndarray | None] = []
    while (made := rest.producer) is not None and made.op == "Sub":
        product = made.inputs[1].producer if made.inputs[1] is not None else None
        if product is None or product.op != "Mul" or half not in product.inputs:
            break
        one, other = product.inputs
        parts.insert(0, known_of(other if one is half else one).reals)
        if made.inputs[0] is None:
            return None, []
        rest = made.inputs[0]
    return rest, parts


QUIRK = Quirk(
    releases="2026.4",
    symptom="A quotient is the product with a rounded reciprocal. One that is rounded to an "
    "integer may go to the wrong neighbour if it lies halfway between two.",
    fires="At limits of a rounded quotient of f32, perhaps with an offset, as QuantizeLinear has "
    "them. The divisor is known, an input, or a scale that is an output of the model.",
    safe="A half of an integer, and the remainder times the reciprocal, add up to the quotient. "
    "The remainder is exact, because each product has at most 24 digits.",
    cost="up to eight elementwise operators, which OpenVINO joins with those around them",
    run=rewriting("Clip", by=by_remainder),
    guess={"Clip": _divided},
)
