"""Arithmetic that the formats cut differently: Sum and Mean, Div, Mod, Pow, Reciprocal, ..."""

from __future__ import annotations

from functools import reduce

import numpy as np

from bridge.neutral.inference import knows
from bridge.neutral.inference.known import Between, between, known_of
from bridge.neutral.types import F32, I32, I64
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.elementwise.known_values import (
    ARITHMETIC,
    Number,
    elementwise,
    maximum,
    minimum,
    on_integers,
)


@legalizes("Max", "Min", target="ir")
def extremum(b: Builder, node: Node) -> Result:
    """IR's Maximum and Minimum take two inputs."""
    return None if len(node.inputs) == 2 else _chain(b, node, node.op)


@legalizes("And", "Max", "Min", "Or", target="onnx")
def of_itself(b: Builder, node: Node) -> Result:
    """And, Max, Min, Or: a value combined with itself is the value, as IR writes a copy
    (`passes/copies.py`). Each operator has element types of its own, and a copy any."""
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
    """Two and two of the inputs combined, from the first one on."""
    values = required(node, *range(len(node.inputs)))
    return b.fold(op, values) if len(values) > 1 else b.op("Identity", *values)


@legalizes("Div", target="onnx")
def floor_division(b: Builder, node: Node) -> Result:
    """IR's Divide with `m_pythondiv` is what OpenVINO's reader of ONNX writes for a Div, which
    rounds integers towards zero. Divide-1 says that it floors."""
    return b.op("Div", *node.inputs) if node.attributes["floor"] else None


@legalizes("Mod", target="ir")
def fmod(b: Builder, node: Node) -> Result:
    """ONNX's Mod with `fmod` is IR's Mod, the one without IR's FloorMod. Of floating point, ONNX
    defines what an infinite divisor gives (Mod-28): the dividend, or the divisor where the signs
    differ."""
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
    """IR's Mod is ONNX's with `fmod`."""
    return b.op("Mod", *node.inputs, fmod=True)


@legalizes("Mod", target="onnx")
def floating_mod(b: Builder, node: Node) -> Result:
    """ONNX takes no floating point in Mod without `fmod` before operator set 28."""
    x, y = required(node, 0, 1)
    if node.attributes["fmod"] or x.element is None or not x.element.is_float:
        return None
    if b.opset >= 28:
        return None
    return _remainder(b, x, y)


@legalizes("Pow", target="ir")
def mixed_power(b: Builder, node: Node) -> Result:
    """ONNX's Pow takes an exponent of another type; its result has the type of the base. IR's
    Power takes one type."""
    x, y = required(node, 0, 1)
    if x.element is y.element or x.element is None or y.element is None:
        return None
    known = known_of(y).array
    if x.element.is_integer and y.element.is_float and not _are_whole(known):
        return b.cast(b.cast(x, F32) ** b.cast(y, F32), x.element)
    return x ** (b.cast(y, x.element) if known is None else b.like(known, x))


def _are_whole(numbers: np.ndarray | None) -> bool:
    """Whether these are whole numbers, from 0 on, of which small integers have powers."""
    return numbers is not None and all(n in range(64) for n in numbers.reshape(-1).tolist())


@legalizes("Pow", target="onnx")
def widened_power(b: Builder, node: Node) -> Result:
    """Pow (7 to 15): where the base runs in a wider type, as ONNX has no smaller ones, so does an
    exponent of whole numbers, which runtimes of ONNX have for few types."""
    x, y = required(node, 0, 1)
    if x.element is None or y.element in (None, x.element, I32, I64) or not y.element.is_integer:
        return None
    return x ** b.cast(y, x.element)


@legalizes("Reciprocal", target="ir")
def reciprocal(b: Builder, node: Node) -> Result:
    """Reciprocal (1 to 13): 1 / x."""
    (x,) = required(node, 0)
    return 1 / x


@legalizes("SquaredDifference", target="onnx")
def squared_difference(b: Builder, node: Node) -> Result:
    """SquaredDifference-1: (a - b)²."""
    difference = b.op("Sub", *node.inputs)
    return difference * difference


def quotient(a: int, b: int) -> int | None:
    """`a / b` rounded towards zero; None where b is 0."""
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _truncated(a: Number, b: Number) -> Number:
    """The quotient rounded towards zero, of whatever by 1."""
    return a if b == 1 else _divided(a, b) or on_integers(quotient)(a, b)


def _floored(a: Number, b: Number) -> Number:
    """The quotient rounded down, of whatever by 1."""
    if b == 1:
        return a
    return _divided(a, b) or on_integers(lambda a, b: a // b if b else None)(a, b)


def _divided(a: Number, b: Number) -> Number:
    """The bounds of a number, none below 0, divided by one above 0."""
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
    """Div: whole numbers, rounded down or towards 0. Mod: the sign of the divisor; ir::Mod, and Mod
    with `fmod`: that of the dividend."""
    if node.op == "Div":
        return elementwise(node, _floored if node.attributes["floor"] else _truncated, *node.inputs)
    by_quotient = node.op == "ir::Mod" or node.attributes["fmod"]
    function = _remainder_of_quotient if by_quotient else _remainder_of_floor
    return elementwise(node, on_integers(function), *node.inputs)


@knows("Max", "Min")
def content_of_extremum(node: Node) -> tuple[Number, ...] | None:
    """Max, Min: of all inputs, broadcast."""
    function = maximum if node.op == "Max" else minimum
    return elementwise(node, lambda *items: reduce(function, items), *node.inputs)
