"""Arithmetic with different operators in the two formats: Sum and Mean, Div, Mod, Pow, Reciprocal,
..."""

from functools import reduce

import numpy as np

from bridge.neutral.inference import knows
from bridge.neutral.inference.known import between, known_of
from bridge.neutral.types import F32, Between
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.elementwise.known_values import (
    ARITHMETIC,
    Number,
    elementwise,
    maximum,
    minimum,
    on_integers,
)
from bridge.operators.guarding import SafeInputs, Unsafe, guards, if_taken, made_broadcastable


@legalizes("Max", "Min", target="ir")
def extremum(b: Builder, node: Node) -> Result:
    """IR's Maximum and Minimum take two inputs."""
    return None if len(node.inputs) == 2 else _chain(b, node, node.op)


@legalizes("And", "Max", "Min", "Or", target="onnx")
def of_itself(b: Builder, node: Node) -> Result:
    """And, Max, Min or Or of a value with itself is the value. IR writes a copy in this form
    (`passes/copies.py`), because each operator accepts only some element types."""
    first, *others = node.inputs
    return first if others and all(value is first for value in others) else None


@legalizes("Sum", target="ir")
def sum_(b: Builder, node: Node) -> Result:
    """Sum as additions."""
    return _chain(b, node, "Add")


@legalizes("Mean", target="ir")
def mean(b: Builder, node: Node) -> Result:
    """Mean as additions and a division."""
    return _chain(b, node, "Add") / len(node.inputs)


def _chain(b: Builder, node: Node, op: str) -> Value:
    """The inputs combined in pairs, from the first one on."""
    values = required(node, *range(len(node.inputs)))
    return b.fold(op, values) if len(values) > 1 else b.op("Identity", *values)


@legalizes("Div", target="onnx")
def floor_division(b: Builder, node: Node) -> Result:
    """IR's Divide with `m_pythondiv` comes from an ONNX Div in OpenVINO's reader, and Div rounds
    integers towards zero. Divide-1 defines rounding down."""
    return b.op("Div", *node.inputs) if node.attributes["floor"] else None


@legalizes("Mod", target="ir")
def fmod(b: Builder, node: Node) -> Result:
    """ONNX's Mod with `fmod` is IR's Mod; IR's FloorMod is the other form. For floating point, ONNX
    defines the result for an infinite divisor (Mod-28). The result is the dividend, or the divisor
    if the signs differ."""
    x, y = required(node, 0, 1)
    if node.attributes["fmod"]:
        return b.op("ir::Mod", x, y)
    if x.element is None or not x.element.is_float:
        return None
    opposite = b.op("Sign", x) * b.op("Sign", y) < 0
    infinite = b.op("IsInf", y) & b.op("IsFinite", x)
    return b.where(infinite, b.where(opposite, y, x), _remainder(b, x, y))


def _remainder(b: Builder, x: Value, y: Value) -> Value:
    return x - b.op("Floor", x / y) * y


@legalizes("ir::Mod", target="onnx")
def ir_mod(b: Builder, node: Node) -> Result:
    """IR's Mod is ONNX's Mod with `fmod`."""
    return b.op("Mod", *node.inputs, fmod=True)


@legalizes("Mod", target="onnx")
def floating_mod(b: Builder, node: Node) -> Result:
    """Before operator set 28, ONNX's Mod without `fmod` does not accept floating point."""
    x, y = required(node, 0, 1)
    if node.attributes["fmod"] or x.element is None or not x.element.is_float:
        return None
    if b.opset >= 28:
        return None
    return _remainder(b, x, y)


@legalizes("Pow", target="ir")
def mixed_power(b: Builder, node: Node) -> Result:
    """ONNX's Pow accepts an exponent of another type, and the result has the type of the base. IR's
    Power requires one type."""
    x, y = required(node, 0, 1)
    if x.element is y.element or x.element is None or y.element is None:
        return None
    known = known_of(y).array
    if x.element.is_integer and y.element.is_float and not _are_whole(known):
        return b.cast(b.cast(x, F32) ** b.cast(y, F32), x.element)
    return x ** (b.cast(y, x.element) if known is None else b.like(known, x))


def _are_whole(numbers: np.ndarray | None) -> bool:
    """Whether all numbers are non-negative whole numbers, the exponents that small integer types
    support."""
    return numbers is not None and all(n in range(64) for n in numbers.reshape(-1).tolist())


@legalizes("Reciprocal", target="ir")
def reciprocal(b: Builder, node: Node) -> Result:
    """Reciprocal (1 to 13): 1 / x."""
    return 1 / node.operand(0)


@legalizes("SquaredDifference", target="onnx")
def squared_difference(b: Builder, node: Node) -> Result:
    """SquaredDifference-1: (a - b)²."""
    difference = b.op("Sub", *node.inputs)
    return difference * difference


def quotient(a: int, b: int) -> int | None:
    """`a / b` rounded towards zero; None if b is 0."""
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _truncated(a: Number, b: Number) -> Number:
    """The quotient rounded towards zero. A division by 1 accepts any number or symbol."""
    return a if b == 1 else _divided(a, b) or on_integers(quotient)(a, b)


def _floored(a: Number, b: Number) -> Number:
    """The quotient rounded down. A division by 1 accepts any number or symbol."""
    if b == 1:
        return a
    return _divided(a, b) or on_integers(lambda a, b: a // b if b else None)(a, b)


def _divided(a: Number, b: Number) -> Number:
    """The bounds of a non-negative number after the division by a positive one."""
    if not isinstance(a, Between) or not isinstance(b, int) or b <= 0 or (a.low or 0) < 0:
        return None
    return between(None if a.low is None else a.low // b, None if a.high is None else a.high // b)


def _remainder_of_floor(a: int, b: int) -> int | None:
    """The remainder with the sign of the divisor."""
    return a % b if b else None


def _remainder_of_quotient(a: int, b: int) -> int | None:
    """The remainder with the sign of the dividend."""
    return a - b * (quotient(a, b) or 0) if b else None


@knows(*ARITHMETIC)
def content_of_arithmetic(node: Node) -> tuple[Number, ...] | None:
    """Add, Sub, Mul, Pow, And, Or, Xor: element by element, on numbers and symbols."""
    return elementwise(node, ARITHMETIC[node.op], *node.inputs)


@knows("Div", "Mod", "ir::Mod")
def content_of_division(node: Node) -> tuple[Number, ...] | None:
    """Div rounds whole numbers down or towards 0. Mod has the sign of the divisor. ir::Mod, and Mod
    with `fmod`, have the sign of the dividend."""
    if node.op == "Div":
        return elementwise(node, _floored if node.attributes["floor"] else _truncated, *node.inputs)
    by_quotient = node.op == "ir::Mod" or node.attributes["fmod"]
    function = _remainder_of_quotient if by_quotient else _remainder_of_floor
    return elementwise(node, on_integers(function), *node.inputs)


@knows("Max", "Min")
def content_of_extremum(node: Node) -> tuple[Number, ...] | None:
    """Max, Min: the result for all inputs, broadcast."""
    function = maximum if node.op == "Max" else minimum
    return elementwise(node, lambda *items: reduce(function, items), *node.inputs)


@guards("Div", "Mod")
def _divisor(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """Div, Mod: integers are divided by 1."""
    together = made_broadcastable(b, node, counts)
    one, other = node.inputs if together is None else together
    assert one is not None and other is not None
    if one.element is None:
        raise Unsafe("its element type is not known")
    known = known_of(other).array
    if not one.element.is_integer or (known is not None and known.all()):
        return together
    return [one, if_taken(b, counts, other, 1)]
