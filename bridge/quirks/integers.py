"""Integers that an engine computes as other numbers."""

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Facts
from bridge.neutral.graph import Node, Value, operand_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F32, F64, I4, I8, I32, I64, U4, U8, Element, is_static, size_of
from bridge.operators import Result
from bridge.quirks.magnitude import FEW, NUMBERS, UNSIGNED, MayBeLarge
from bridge.quirks.opaque import opaque
from bridge.quirks.quirk import BOTH, COMPARISONS, CPU, ELEMENTWISE, GPU, Place, quirk

BY_BITS = ("MatMul", "ReduceL1", "ReduceMax", "ReduceMin", "ReduceSum")
OPERATORS = (*COMPARISONS, *BY_BITS, "Div", "Mod", "PRelu", "Relu", "ir::Mod")
BYTES = (0xFF, 0xFF00, 0xFF0000, 0x7F000000)
"""The bits of each byte. In f32, a sum of 256 products of two bytes is exact."""
ByPlace = dict[int, Value]
"""The bytes of numbers by their places, each with the sign of the number."""
LOW = (1 << 12) - 1
"""The last 12 bits. A sum of 4096 such numbers is exact in f32, and so are sums of the rest."""


def _is_of_integers(node: Node) -> bool:
    if node.op != "Where":
        types = (*NUMBERS, *UNSIGNED) if node.op in BY_BITS else NUMBERS
        return all(v is None or v.element in types for v in node.inputs)
    condition, x, y = node.operands
    made, shape = condition.producer, node.outputs[0].shape
    if made is None or made.op not in ELEMENTWISE:
        return False
    # Trip counts and sizes are no such numbers. Two constants may be limits of a Slice.
    if is_static(shape) and size_of(shape) == 1 and None in (x.constant, y.constant):
        return False
    return x.element in NUMBERS and x.element is y.element


# Sums, products and maxima of integers are exact. Integers that follow from sizes, places and
# types of few bits are smaller. The plugin computes a Select in one kernel with its condition.
@quirk(
    *OPERATORS,
    "Where",
    recorded=True,
    uses=True,
    where=_is_of_integers,
    after=("kernel_of_lower_rank", "cast_to_bool"),
    symptom="Divisions, remainders, comparisons, Relu, PRelu, products of matrices, and sums and "
    "extremes along axes of integers are computed in f32: 16777219 divided by 5 is 3355444. A "
    "Select of integers behind a comparison rounds them to f32.",
    cost="about 20 operators for a division, up to 40 for a product of matrices, four for sums and "
    "ten for extremes along axes, and one to three for others",
)
def integers_in_f32(b: Builder, node: Node, place: Place) -> Result:
    """A quotient plus the quotient of its remainder has a smaller remainder. If the remainder has
    the wrong sign, the quotient is too large by one. x is less than y if max(x, y) - x is not
    0, and equal if x - y is 0, also if the difference overflows. y + 1 * (x - y) is x and
    y + 0 * (x - y) is y. A number is the sum of its bytes, and its last bits plus the rest. Among
    numbers with the greatest rest, the one with the greatest last bits is the maximum.
    """
    values, facts = node.operands, place.facts(MayBeLarge)
    if node.op == "Where":
        condition, x, y = values
        large = facts.of(x) or facts.of(y)
        return y + b.cast(condition, x.element) * (x - y) if large else None
    if node.op in BY_BITS:
        return _by_bits(b, node, facts)
    if not facts.of(values[0]):
        return None
    if node.op in COMPARISONS:
        return _compared(b, node.op, *values) if facts.of(values[1]) else None
    if node.op == "Relu":
        return b.max(values[0], 0)
    if node.op == "PRelu":
        return b.max(values[0], 0) + b.min(values[0], 0) * values[1]
    return None if _is_corrected(node, place) else _divided(b, node, *values)


def _compared(b: Builder, op: str, x: Value, y: Value) -> Value:
    """A comparison with 0: of the difference, or of the larger number less one of the two."""
    if op in ("Equal", "NotEqual"):
        return b.op(op, x - y, 0)
    other = x if op in ("Less", "GreaterOrEqual") else y
    return b.op("Equal" if "Equal" in op else "NotEqual", b.max(x, y) - other, 0)


def _by_bits(b: Builder, node: Node, facts: Facts[bool]) -> Value | None:
    """A product of matrices or a reduction, by parts of the numbers."""
    large, element = [facts.of(value) for value in node.operands], node.operand(0).element
    # The plugin holds numbers of all these types in 32 bits with a sign.
    x, other = (b.cast(v, I64) if v.element in UNSIGNED else v for v in node.operands)
    if node.op != "MatMul":
        made = _reduced(b, node, x, other) if large[0] and not _is_rest(node.operand(0)) else None
    else:
        parted = any(operand_of(operand_of(v, "Mul"), "BitwiseAnd") for v in node.operands)
        parts = (_bytes(b, v, is_large) for v, is_large in zip((x, other), large, strict=True))
        made = _product(b, node, *parts) if any(large) and not parted else None
    return None if made is None else b.cast(made, element)


def _is_rest(value: Value) -> bool:
    """Whether a value is a number without its last bits."""
    made = value.producer
    if made is None or made.op != "Sub":
        return False
    x, last = made.operands
    return operand_of(last, "BitwiseAnd") is x


def _reduced(b: Builder, node: Node, x: Value, axes: Value) -> Value:
    """A reduction of the last bits, and one of the rest. An extreme of no elements has all bits."""

    def again(op: str, value: Value, **more: bool) -> Value:
        attributes = {**node.attributes, **more}
        return b.node(op, [value, axes], 1, attributes, extras=node.extras).outputs[0]

    x = abs(x) if node.op == "ReduceL1" else x
    last = b.op("BitwiseAnd", x, LOW)
    rest = x - last
    if node.op in ("ReduceL1", "ReduceSum"):
        return again("ReduceSum", rest) + again("ReduceSum", last)
    reached = again(node.op, rest, keepdims=True)
    result = reached if node.attributes["keepdims"] else again(node.op, rest)
    counts = b.cast((rest - opaque(b, reached, "memory")).equal(0), x.element)
    if node.op == "ReduceMax":
        last = b.op("BitwiseAnd", last, 0 - counts)
    else:
        last = b.op("BitwiseOr", last, b.op("BitwiseAnd", counts - 1, LOW))
    return b.op("BitwiseOr", result, b.op("BitwiseAnd", again(node.op, last), LOW))


def _product(b: Builder, node: Node, left: ByPlace, right: ByPlace) -> Value:
    """A product of matrices by their bytes. What has 32 bits and more is left out."""
    pairs = [(x, y) for i, x in left.items() for j, y in right.items() if i + j < len(BYTES)]
    return b.fold("Add", [b.op("MatMul", x, y, **node.attributes) for x, y in pairs])


def _bytes(b: Builder, x: Value, is_large: bool) -> ByPlace:
    bits = dict(enumerate(BYTES[: None if is_large else -1]))
    if x.constant is None or x.constant.size > FEW:
        size, sign = abs(x), b.op("Sign", x)
        return {place: b.op("BitwiseAnd", size, mask) * sign for place, mask in bits.items()}
    numbers = x.constant.array().astype(np.int64)
    some = {place: np.sign(numbers) * (abs(numbers) & mask) for place, mask in bits.items()}
    return {place: b.like(part, x) for place, part in some.items() if part.any() or not place}


def _divided(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """The quotient or the remainder. Quotients of remainders correct the quotient, so that the
    remainder is smaller than the divisor. Then its sign decides."""
    quotient = b.op("Div", x, y)
    rest = x - quotient * y
    for _ in range(2):
        more = b.op("Div", rest, y)
        quotient, rest = quotient + more, rest - more * y
    sign = b.op("Sign", x)
    # The remainder has the sign of the dividend, or of the divisor if the quotient is rounded down.
    down = node.attributes["floor"] if node.op == "Div" else node.op == "Mod"
    owner = b.op("Sign", y) if down else sign
    wrong = b.max(0 - b.op("Sign", rest) * owner, 0)
    if node.op == "Div":
        return quotient - (wrong if down else wrong * sign * b.op("Sign", y))
    return rest + (wrong * y if down else wrong * sign * abs(y))


def _is_corrected(node: Node, place: Place) -> bool:
    """Whether a division is one of those that `_divided` writes: its remainder is divided again, or
    its sign is asked for."""
    x, y = node.inputs
    products = [n for n in place.uses.users(node.outputs[0]) if n.op == "Mul" and n.inputs[1] is y]
    rests = [n for p in products for n in place.uses.users(p.outputs[0]) if n.op == "Sub"]
    return any(
        user.op == "Sign" or (user.op == "Div" and user.inputs[1] is y)
        for rest in rests
        if rest.inputs[0] is x
        for user in place.uses.users(rest.outputs[0])
    )


MOST = 63
"""The largest exponent. From the 64th power on, all integers but 0, 1 and -1 overflow."""


@quirk(
    "Pow",
    recorded=True,
    engines=BOTH,
    symptom="A power of integers is computed in f32: 4097 squared is too small by one.",
    cost="a product for each bit of the exponent, and for each bit that is set; about 40 operators "
    "for an exponent that is computed",
)
def power_of_integers(b: Builder, node: Node, place: Place) -> Result:
    """The binary digits of the exponent select squares of the base. The power is their product."""
    base, exponent = node.inputs
    if base is None or base.element is None or not base.element.is_integer or exponent is None:
        return None
    known = known_of(exponent).array
    if known is None:
        computed = exponent.element is base.element and place.engine == CPU
        return _by_digits(b, base, exponent) if computed else None
    if known.size != 1 or known.ndim > (base.rank or 0):
        return None
    power = known.reshape(-1)[0]
    return _power(b, base, int(power)) if power in range(2, MOST + 1) else None


def _power(b: Builder, base: Value, power: int) -> Value:
    """The power, from at least one product. The base itself is not a power."""
    result: Value | None = None
    while power:
        if power & 1:
            result = base if result is None else result * base
        power >>= 1
        if power:
            base = base * base
    assert result is not None
    return result


def _by_digits(b: Builder, base: Value, exponent: Value) -> Value:
    """The power for an exponent that is computed. With a negative exponent, it is the inverse: 0,
    unless the base is 1 or -1. A Where would compute in f32, too."""
    last = b.op("BitwiseAnd", exponent, 1)
    square, result = base, 1 + last * (base - 1)
    # Above that, only powers of 0, 1 and -1 do not overflow. The last digit decides their sign.
    limited = b.op("BitwiseOr", b.min(exponent, MOST - 1), last)
    for digit in range(1, MOST.bit_length()):
        square = square * square
        selected = b.min(b.op("BitwiseAnd", limited, 1 << digit), 1)
        result = result * (1 + selected * (square - 1))
    is_inverse = b.cast(exponent < 0, base.element)
    is_unit = b.cast((base * base).equal(1), base.element)
    return result * (1 - is_inverse * (1 - is_unit))


@quirk(
    *("Abs", "Add", "Div", "MaxPool", "Mul", "Neg", "Sub"),
    recorded=True,
    uses=True,
    symptom="200 + 100 is 255 in u8, 7 / 2 is 4 if the shape is dynamic, and -(-128) is 127 in i8. "
    "The place of the maximum of zeros of u8 is always 0.",
    cost="two or three Converts",
)
def saturating_bytes(b: Builder, node: Node, place: Place) -> Result:
    """The last 8 bits of the 32-bit result are the result that wraps round. Quotients and maxima
    are the same.
    """
    element = node.operand(0).element
    if element not in (I8, U8) or (node.op == "Abs" and element is U8):
        return None
    if node.op == "MaxPool":
        if len(node.outputs) == 1 or not place.count(node.outputs[1]):
            return None
        most, places = b.ops("MaxPool", 2, b.cast(node.operand(0), F32), **node.attributes)
        return b.cast(most, element), places
    wide = [b.cast(x, I32) for x in node.operands]
    return b.cast(b.op(node.op, *wide, **node.attributes), element)


IN_RANGE = frozenset({"Clip", "FakeQuantize"})
"""Operators whose results are in the range of the type, since they belong to a quantisation."""


# Elsewhere the CPU plugin wraps round, like in ONNX.
@quirk(
    "Cast",
    "CastLike",
    recorded=True,
    engines=BOTH,
    symptom="A Convert of a negative float to u8 or u4 gives 0 in a body or with a dynamic shape, "
    "and of f64 everywhere. On the GPU plugin one of -9 to i4 gives -8, and of 17 to u4 gives 15.",
    cost="another Convert; for the GPU plugin a BitwiseAnd, and for i4 an Add and a Subtract",
)
def saturating_conversion(b: Builder, node: Node, place: Place) -> Result:
    """If the standard defines the result of the Cast, i32 can hold the number. Its last bits are
    the result.
    """
    x, like = node.inputs[0], node.input(1)
    to = node.attributes["to"] if like is None else like.element
    if x is None or x.element is None or not x.element.is_float:
        return None
    if x.producer is not None and x.producer.op in IN_RANGE:
        return None
    if place.engine == GPU:
        return _of_last_bits(b, x, to) if to in (I4, U4) else None
    is_known = place.body is None and is_static(x.shape) and x.element is not F64
    if to not in (U4, U8) or is_known:
        return None
    return b.op("Cast", b.op("Cast", x, to=I32), to=to)


def _of_last_bits(b: Builder, x: Value, to: Element | None) -> Value:
    """The last 4 bits of a number in 32 bits."""
    whole = b.cast(x, I32)
    bits = b.constant(15, I32)
    last = (
        b.op("BitwiseAnd", whole, bits)
        if to is U4
        else b.op("BitwiseAnd", whole + b.constant(8, I32), bits) - b.constant(8, I32)
    )
    return b.op("Cast", last, to=to)


# The kernel calls fmod.
@quirk(
    "Mod",
    recorded=True,
    engines=(GPU,),
    symptom="FloorMod of -7 and 2 is -1: it has the sign of the dividend.",
    cost="a Mod, two Less, an Equal, three logical operators, an Add and a Select",
)
def sign_of_remainder(b: Builder, node: Node, place: Place) -> Result:
    """The remainder of a division that rounds down is fmod, or fmod plus the divisor."""
    x, y = node.inputs
    if x is None or y is None or x.element is None or not x.element.is_signed:
        return None
    return _with_sign(b, b.op("ir::Mod", x, y), y)


def _with_sign(b: Builder, rest: Value, y: Value) -> Value:
    zero = b.like(0, rest)
    other = b.op("Xor", rest < zero, y < zero) & ~rest.equal(zero)
    return b.where(other, rest + y, rest)
