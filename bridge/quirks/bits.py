"""Integers of which an engine keeps the last 32 bits, as a number with a sign."""

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, I32, I64, U32, U64
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.magnitude import FEW, MayBeLarge
from bridge.quirks.opaque import opaque
from bridge.quirks.quirk import COMPARISONS, Place, quirk

MODULAR = (
    "Add", "BitwiseAnd", "BitwiseLeftShift", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Mul", "Sub",
)  # fmt: skip
"""Operators whose last 32 bits follow from those of their operands."""

SAME = ("Equal", "NotEqual", "Where")
"""Operators that do the same with and without a sign, if the engine computes them in integers."""

ORDERED = (
    *(op for op in COMPARISONS if op not in SAME),
    *("Clip", "Max", "Min", "ReduceMax", "ReduceMin", "Unique", "ir::TopK"),
)
"""Operators that depend on the order of numbers."""

OF_FIRST = ("ReduceMax", "ReduceMin", "Unique", "ir::TopK")
"""Those of them whose other inputs are axes and counts."""

SIGN = -(1 << 31)


@quirk(
    "Constant",
    *MODULAR,
    uses=True,
    symptom="A constant of u32 from 2^31 on is the largest i32, and so is one of i64 beyond 32 "
    "bits: t - 3000000000 is wrong for each t.",
    cost="a Gather for a constant of u32; two shifts and two Adds for one of i64 or u64; and a 0 "
    "from a Bucketize of a random number below 1/2",
)
def constant_beyond_32_bits(b: Builder, node: Node, place: Place) -> Result:
    """A conversion from i32 to u32 keeps all bits. The first bits of a number, shifted to their
    place, plus the last ones are the number.
    """
    if node.op == "Constant":
        value = node.outputs[0]
        if value.element is not U32 or not is_beyond(value):
            return None
        numbers = node.attributes["value"].array()
        hidden = b.cast(opaque(b, b.constant(numbers.view(np.int32)), "content"), U32)
        hidden.known_value = value.known_value and (None,) * numbers.size  # Or it is folded again.
        return hidden
    parted = [_parted(b, v) if _is_parted(node.op, v) else v for v in node.operands]
    if parted == node.operands:
        return None
    return b.node(node.op, [*parted], 1, node.attributes, extras=node.extras).outputs


@constant_beyond_32_bits.undoes("Cast")
def _without_sign(b: Builder, node: Node, uses: Uses) -> Value | None:
    constant = node.operand(0).constant
    is_of_bits = constant is not None and constant.element is I32
    if constant is None or not is_of_bits or node.attributes["to"] is not U32:
        return None
    return b.constant(constant.array().view(np.uint32))


def is_beyond(value: Value) -> bool:
    """Whether a constant has numbers that are none of i32."""
    constant = value.constant
    if constant is None or value.element not in (U32, I64, U64) or constant.size > FEW**2:
        return False
    numbers = constant.array()
    low, high = I32.bounds
    return bool(numbers.size) and (int(numbers.max()) > high or int(numbers.min()) < low)


def is_limit(value: Value) -> bool:
    """Whether a constant has an end of i64, which stands for no limit, as those of i32 do."""
    assert value.constant is not None
    ends = (I64.bounds[0], I64.bounds[0] + 1, I64.bounds[1])
    return any(n in ends for n in value.constant.array().reshape(-1)[:FEW].tolist())


def _is_parted(op: str, value: Value) -> bool:
    if value.element is U32 or not is_beyond(value):
        return False
    return op.startswith("Bitwise") or not is_limit(value)


def _parted(b: Builder, value: Value) -> Value:
    """The number from two numbers of i32. In 32 bits, the first one vanishes."""
    assert value.constant is not None
    numbers = value.constant.array().astype(np.int64)
    last = numbers.astype(np.int32).astype(np.int64)
    first = opaque(b, b.constant((numbers - last) >> 32), "number")
    for _ in range(2):
        first = b.op("BitwiseLeftShift", first, 16)
    return b.cast(first + last, value.element)


# Where a number is an index or of few bits, the sign bit is 0.
@quirk(
    *("Abs", "BitwiseRightShift", "Cast", "Div", "Mod", "Sign", "ir::Mod"),
    *SAME,
    *ORDERED,
    recorded=True,
    where=lambda node: any(v.element is U32 for v in (*node.operands, *node.outputs)),
    symptom="Numbers of u32 from 2^31 on are negative: in comparisons, extremes, quotients, shifts "
    "to the right and conversions.",
    cost="a bitwise operator for each operand and result; three for a shift to the right, six for "
    "a conversion, and fifteen for a division",
)
def unsigned_as_signed(b: Builder, node: Node, place: Place) -> Result:
    """Without the sign bit, the order of signed numbers is that of unsigned ones. A conversion to
    a float adds two halves of the bits. Half of the number, divided as a signed one, gives the
    quotient but for its last bit, and the rest decides about that.
    """
    x, *others = node.operands
    element, facts = node.outputs[0].element, place.facts(MayBeLarge)
    if node.op == "Cast":
        if x.element is U32:
            is_wrong = element is not None and element.is_float and facts.of(x)
            return b.cast(_as_float(b, b.cast(x, I32)), element) if is_wrong else None
        is_float = x.element is not None and x.element.is_float
        return b.cast(_of_float(b, b.cast(x, F32)), U32) if is_float else None
    if U32 not in (x.element, others[0].element if others else None):
        return None
    if not any(facts.of(v) for v in node.operands if v.element is U32):
        return None
    if node.op in ("Abs", "Sign"):
        return x if node.op == "Abs" else b.min(b.cast(~x.equal(b.like(0, x)), U32), b.like(1, x))
    if node.op in SAME or node.op in ORDERED:
        count = 1 if node.op in OF_FIRST else len(node.inputs)
        turn = node.op in ORDERED
        values = [_signed(b, v, turn) for v in node.operands[:count]] + node.operands[count:]
        made = b.node(node.op, [*values], len(node.outputs), node.attributes, extras=node.extras)
        return [
            _unsigned(b, new, turn) if old.element is U32 else new
            for new, old in zip(made.outputs, node.outputs, strict=True)
        ]
    x, y = b.cast(x, I32), b.cast(others[0], I32)
    if node.op == "BitwiseRightShift":
        return b.cast(_shifted(b, x, y), U32)
    is_large = b.op("BitwiseNot", b.op("BitwiseRightShift", y, 31))
    half = b.op("BitwiseAnd", _shifted(b, x, b.like(1, x)), is_large)
    quotient = b.op("BitwiseLeftShift", b.op("Div", half, y), 1)
    rest = x - quotient * y
    more = b.op("GreaterOrEqual", *(b.op("BitwiseXor", v, SIGN) for v in (rest, y)))
    more = b.cast(more, I32)
    return b.cast(quotient + more if node.op == "Div" else rest - more * y, U32)


def _signed(b: Builder, value: Value, turn: bool) -> Value:
    if value.element is not U32:
        return value
    bits = b.cast(value, I32)
    return b.op("BitwiseXor", bits, SIGN) if turn else bits


def _unsigned(b: Builder, value: Value, turn: bool) -> Value:
    return b.cast(b.op("BitwiseXor", value, SIGN) if turn else value, U32)


def _shifted(b: Builder, x: Value, count: Value) -> Value:
    """Bits shifted to the right, with zeros in front: the sign bit goes its own way."""
    sign = b.op("BitwiseAnd", b.op("BitwiseRightShift", x, 31), 1)
    rest = b.op("BitwiseRightShift", b.op("BitwiseAnd", x, I32.bounds[1]), count)
    return b.op("BitwiseOr", rest, b.op("BitwiseLeftShift", sign, 31 - count))


def _as_float(b: Builder, bits: Value) -> Value:
    last = b.op("BitwiseAnd", bits, 0xFFFF)
    first = b.op("BitwiseAnd", b.op("BitwiseRightShift", bits, 16), 0xFFFF)
    return b.cast(first, F32) * 65536.0 + b.cast(last, F32)


def _of_float(b: Builder, x: Value) -> Value:
    """The bits of a float from 0 to 2^32. Its first half is exact, and so is the difference."""
    first = b.op("Floor", x / 65536.0)
    last = b.cast(x - first * 65536.0, I32)
    return b.op("BitwiseLeftShift", b.cast(first, I32), 16) + last
