"""Numbers that an engine rounds in other ways."""

from collections.abc import Iterable, Iterator
from math import frexp

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import BF16, F32, F64, is_static, size_of
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.known import KnownAt, when_known
from bridge.quirks.quirk import GPU, MOVES, Place, quirk

DIGITS = 24
"""The binary digits of an f32."""

MOST = 1 << 17
"""The largest quotient that is corrected."""

NORMAL = 2.0**-100, 2.0**100
"""The sizes of constant divisors. The parts of others may be no normal numbers."""

X, DIVISOR, OFFSET = var(F32), var(F32), var(F32)
ROUNDED = op("Round", X / DIVISOR, mode="half_to_even")
SHIFTED = ROUNDED + OFFSET


def _once(value: Value) -> int:
    return 1


# OpenVINO multiplies by the reciprocal of the divisor. The nearest half is taken for the
# quotient, and the remainder of the division corrects it. All products of such a half and a
# part of the divisor are exact in f32. OpenVINO folds quotients of constants exactly.
#
# The scale and the zero point of DynamicQuantizeLinear are corrected only if a model gives them as
# outputs. The zero point lies halfway between two integers if the data are symmetric. Integers that
# are multiplied and scaled again stay as they are: which of two integers is the right one depends
# on the last digit of the data. The correction of all would take 1 to 2 % of the time of a model,
# or up to 12 % if shapes are open. Such a model would have twice the layers, and convert in one and
# a half times the time.
@quirk(
    "Clip",
    "Div",
    "Round",
    recorded=True,
    uses=True,
    needs=("Round",),
    symptom="A quotient is the product with a rounded reciprocal. One that is rounded to an "
    "integer may go to the wrong neighbour if it lies halfway between two. A range divided by 255, "
    "which is the scale of DynamicQuantizeLinear, differs, and so does its zero point.",
    cost="up to eight elementwise operators, which OpenVINO joins with those around them; twenty "
    "operators of one element for a scale",
)
def rounded_quotient(b: Builder, node: Node, place: Place) -> Result:
    """A quotient is an approximate one, such as a half of an integer, plus the remainder times the
    reciprocal. The remainder is exact, because each product has at most 24 digits.
    """
    match node.op:
        case "Clip":
            return _quantised(b, node, place)
        case "Div":
            return _scale(b, node, place)
    return _zero_point(b, node, place)


def _quantised(b: Builder, node: Node, place: Place) -> Value | None:
    """The limits of a rounded quotient of f32, perhaps with an offset, as QuantizeLinear has them.
    The divisor is known, an input, or a scale that is an output of the model."""
    y, *limits = node.inputs
    for pattern in (SHIFTED, ROUNDED):
        for found in pattern.matches(y, Found(), _once):
            most = _largest(limits, found.get(OFFSET))
            if most is None or when_known(found[X], place) is KnownAt.FOLDED:
                continue
            quotient = _corrected(b, found[X], found[DIVISOR], most, place)
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


def _corrected(b: Builder, x: Value, divisor: Value, most: int, place: Place) -> Value | None:
    """The quotient, whose size is at most `most` where it matters."""
    known = known_of(divisor).reals
    is_given = divisor.behind("Cast", "Reshape", "Unsqueeze").producer is None
    if known is None and not is_given and not _is_shown(divisor, place):
        return None
    if known is not None and not _is_rounded(known):
        return None
    # Twice the half is an integer. A product with a part has no more digits than an f32.
    digits = DIGITS - (2 * most + 1).bit_length()
    if known is None:
        reciprocal = b.once((_corrected, divisor), lambda: 1.0 / divisor)
    else:
        reciprocal = b.constant(np.float32(1) / known)
    near = b.op("Clip", x * reciprocal, -float(most), float(most))
    half = b.op("Floor", near) + 0.5
    parts: Iterable[Value | np.ndarray]
    if known is None:
        parts = b.once((_split, divisor, digits), lambda: _computed_parts(divisor, digits))
    else:
        parts = _parts(known, digits)
    rest = x
    for part in parts:
        rest = rest - half * part
    return half + rest * reciprocal


def _is_number(value: Value) -> bool:
    """Whether a value has one element."""
    return is_static(value.shape) and size_of(value.shape) == 1


STEPS = (*MOVES, "Add", "Cast", "Clip", "Div", "Round", "Sub")
"""The operators between a scale and the integers that it gives."""

MOST_STEPS = 30
"""The most results of such operators that are followed."""


def _is_shown(scale: Value, place: Place) -> bool:
    """Whether a scale is one number, and is an output of its graph, or gives integers that are."""
    outputs, found = {*map(place.of, place.graph.outputs)}, [scale]
    for value in found if _is_number(scale) else ():
        if value in outputs:
            return True
        made = [user.outputs[0] for user in place.users(value) if user.op in STEPS]
        found += made if len(found) < MOST_STEPS else []
    return False


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
        part, rest = _split(rest, digits)
        parts.append(part)
    return [*parts, rest]


def _split(x: Value, digits: int) -> tuple[Value, Value]:
    """Two numbers whose sum is x, the first of so many digits (Veltkamp's splitting)."""
    wide = x * float(2 ** (DIGITS - digits) + 1)
    part = wide - (wide - x)
    return part, x - part


MOST_POINT = 256
"""The largest quotient that is corrected. A zero point of 8 bits is smaller."""

RANGE = (op("Max").shared() - op("Min").shared()).shared()
WITHOUT_0 = op("Where", op("Equal", RANGE, 0), 255, RANGE).shared()
LEVELS = constant(F32)
RANGE_STEP = (WITHOUT_0 | RANGE) / LEVELS
DIVIDEND = var(F32)
STEP = var(F32)
QUOTIENT = DIVIDEND / STEP
OPPOSITE = 0 - QUOTIENT
ZERO_POINT = op("Clip", OPPOSITE | QUOTIENT)


def _scale(b: Builder, node: Node, place: Place) -> Value | None:
    """The difference of a Max and a Min by a whole number, if it is an output of the model."""
    if not _is_shown(node.outputs[0], place):
        return None
    for found in RANGE_STEP.matches(node.outputs[0], Found(), _once):
        x, levels = found[WITHOUT_0 if WITHOUT_0 in found else RANGE], known_of(found[LEVELS]).array
        if not _is_number(x) or levels is None or levels.size != 1:
            continue
        count = float(levels.reshape(()))
        if 1 < count < 2 ** (DIGITS // 2) and count % 1 == 0 and np.frexp(count)[0] != 0.5:
            factor = b.constant(np.float32(1 / count))
            near = x * factor
            part, rest = _split(near, DIGITS // 2)
            return near + (x - part * found[LEVELS] - rest * found[LEVELS]) * factor
    return None


def _zero_point(b: Builder, node: Node, place: Place) -> Value | None:
    (limited,) = node.inputs
    for found in ZERO_POINT.matches(limited, Found(), _once):
        x, divisor = found[DIVIDEND], found[STEP]
        if _is_number(x) and _is_number(divisor) and known_of(divisor).array is None:
            quotient = _corrected(b, x, divisor, MOST_POINT, place)
            if quotient is not None:
                quotient = 0.0 - quotient if OPPOSITE in found else quotient
                return _rounded(b, node, quotient)
    return None


def _rounded(b: Builder, node: Node, quotient: Value) -> Value:
    """A quotient within the same limits, rounded in the same way."""
    assert node.inputs[0] is not None and node.inputs[0].producer is not None
    clipped = b.op("Clip", quotient, *node.inputs[0].producer.inputs[1:])
    return b.op("Round", clipped, **node.attributes)


# The plugin takes the quotient times the divisor from the dividend, and rounds both.
@quirk(
    "ir::Mod",
    recorded=True,
    symptom="The remainder of a division by an infinity is NaN, and that of 16777216 by 7.25 is 6.",
    cost="about 25 elementwise operators, which OpenVINO joins to one",
)
def rounded_remainder(b: Builder, node: Node, place: Place) -> Result:
    """A smaller number than the divisor is its own remainder. All products of halves of a quotient
    and of the divisor are exact, and so are the differences, but for the last digit of the divisor.
    Twice, that is right for quotients below 2^46.
    """
    element, known = node.outputs[0].element, known_of(node.operand(1)).reals
    if element is None or not element.is_float:
        return None
    if known is not None and (abs(np.frexp(known)[0]) == 0.5).all():
        return None  # All its products are exact.
    x, divisor = (b.cast(value, F64 if element is F64 else F32) for value in node.operands)
    size, modulus = abs(x), abs(divisor)
    first, _ = _split(b.where(modulus < b.like(SPLIT, modulus), modulus, 0), DIGITS // 2)
    parts, rest = (first, modulus - first), size
    for _ in range(2):
        for half in _split(b.op("Floor", rest / modulus), DIGITS // 2):
            for part in parts:
                rest = rest - half * part
    return b.cast(b.op("Sign", x) * b.where(size < modulus, size, rest), element)


@quirk(
    "LRN",
    recorded=True,
    symptom="An LRN converts its bias to an integer: 1 for 1.5.",
    cost="a Multiply",
)
def bias_of_lrn(b: Builder, node: Node, place: Place) -> Result:
    """(bias + s)^-beta is bias^-beta times (1 + s / bias)^-beta for a bias above 0."""
    attributes, bias = node.attributes, node.attributes["bias"]
    if bias == int(bias) or bias <= 0:
        return None
    scaled = {**attributes, "bias": 1.0, "alpha": attributes["alpha"] / bias}
    factor: float = bias ** -attributes["beta"]
    return b.op("LRN", *node.inputs, **scaled) * factor


SPLITS, SPLIT = 2.0**16 + 1, 2.0**110
"""The factor that splits an f32 into its first eight digits and the rest, and the limit of numbers
that are split: the product of larger ones may be infinite."""

PRODUCT = X * SPLITS
NEAREST = op("Where", op("Less", op("Abs", X), SPLIT), PRODUCT - (PRODUCT - X), X)


# Veltkamp's splitting: p - (p - x) rounds x to the nearest number of eight digits, ties to even.
# NaN is not below the limit. Numbers from 2**110 on are still cut off.
@quirk(
    "Cast",
    symptom="A Convert from f32 to bf16 cuts digits off, instead of rounding, where sizes are "
    "open, in all bodies and of constants. One from f64 always does.",
    cost="seven elementwise operators, which OpenVINO joins to one",
)
def rounded_bf16(b: Builder, node: Node, place: Place) -> Result:
    """At a Cast of f64 to bf16, and of f32 of open shape, in a body, or of what OpenVINO folds. A
    constant is rounded at once.

    The number that is converted is the nearest one of bf16, so that there is nothing to cut off.
    """
    x = node.operand(0)
    if node.attributes["to"] is not BF16 or x.element not in (F32, F64) or _unsplit(x) is not None:
        return None
    if x.constant is not None:
        numbers = x.constant.array()
        rounded = numbers.astype(BF16.dtype).astype(numbers.dtype)
        same = np.array_equal(rounded, numbers, equal_nan=True)
        return None if same else b.op("Cast", b.constant(rounded), **node.attributes)
    is_rounded = place.holder is None and is_static(x.shape) and x.element is F32
    if is_rounded and when_known(x, place) is not KnownAt.FOLDED:
        return None
    x = b.cast(x, F32)
    product = x * b.like(SPLITS, x)
    nearest = product - (product - x)
    split = b.where(b.op("Abs", x) < b.like(SPLIT, x), nearest, x)
    return b.op("Cast", split, **node.attributes)


@rounded_bf16.undoes("Cast")
def cut_off_bf16(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The Cast of the number itself."""
    x = _unsplit(node.operand(0))
    is_one = node.attributes["to"] is BF16 and x is not None
    return b.op("Cast", x, **node.attributes) if is_one else None


def _unsplit(x: Value) -> Value | None:
    """The number that `rounded_bf16` splits into this one."""
    return next((found[X] for found in NEAREST.matches(x, Found(), _once)), None)


@quirk(
    "FakeQuantize",
    engines=(GPU,),
    symptom="FakeQuantize rounds 0.5 steps to 1, and 2.5 to 3.",
    cost="a Clamp, a Round, two Multiplies and an Add, which the plugin does not compute in 8 "
    "bits; they stay on the way back to ONNX",
)
def ties_of_quantisation(b: Builder, node: Node, place: Place) -> Result:
    """This is FakeQuantize's definition. Dividing by a power of two rounds nothing."""
    data, *limits = node.inputs
    low, high, least, most = (_number(limit) for limit in limits)
    if data is None or low is None or high is None or least is None or most is None or low >= high:
        return None
    count = node.attributes["levels"] - 1
    step, scale = (high - low) / count, (most - least) / count
    start = low / step
    if frexp(step)[0] != 0.5 or start % 2:
        return None
    steps = b.op("Clip", data, b.like(low, data), b.like(high, data)) * b.like(1 / step, data)
    return b.op("Round", steps) * b.like(scale, data) + b.like(least - start * scale, data)


def _number(limit: Value | None) -> float | None:
    """The number of a limit, if it is known and one."""
    known = None if limit is None else known_of(limit).reals
    return float(known.flat[0]) if known is not None and np.size(known) == 1 else None
