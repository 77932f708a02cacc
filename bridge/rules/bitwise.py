"""Shifts, which the formats name differently, and bitwise operators on booleans and in old ONNX."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import BOOL, ELEMENTS
from bridge.rules import Refused, Result, expands
from bridge.rules.idioms import cast

_LOGICAL = {
    "BitwiseAnd": "And",
    "BitwiseNot": "Not",
    "BitwiseOr": "Or",
    "BitwiseXor": "Xor",
}


@expands(*_LOGICAL, target="onnx")
def on_booleans(b: Builder, node: Node) -> Result:
    """IR's bitwise operators take booleans, for which ONNX has operators of their own."""
    first = node.inputs[0]
    assert first is not None
    return b.op(_LOGICAL[node.op], *node.inputs) if first.element is BOOL else None


@expands("BitShift", target="ir")
def bit_shift(b: Builder, node: Node) -> Result:
    """One operator of IR for each direction."""
    left = node.attributes["direction"] == "LEFT"
    return b.op("BitwiseLeftShift" if left else "BitwiseRightShift", *node.inputs)


@expands("BitwiseLeftShift", "BitwiseRightShift", target="onnx")
def bitwise_shift(b: Builder, node: Node) -> Result:
    """ONNX's BitShift; of signed integers only since operator set 28. Before, a left shift runs
    on the same bits without a sign, a right shift is a division by a power of two that rounds
    down."""
    x, y = node.inputs
    assert x is not None and y is not None and b.target is not None
    left = node.op == "BitwiseLeftShift"
    direction = "LEFT" if left else "RIGHT"
    if x.element is None or x.element.kind == "uint" or b.target.opset >= 28:
        return b.op("BitShift", x, y, direction=direction)
    if x.element.kind != "int":
        raise Refused(f"ONNX shifts no {x.element}")
    if left:
        unsigned = ELEMENTS[x.element.name.replace("i", "u")]
        shifted = b.op("BitShift", cast(b, x, unsigned), cast(b, y, unsigned), direction="LEFT")
        return cast(b, shifted, x.element)
    unsigned = ELEMENTS[x.element.name.replace("i", "u")]
    negative = b.op("Less", x, b.like(0, x))
    # The complement of a negative number is not negative, and shifts as an unsigned one does.
    ones = b.op("Sub", b.op("Neg", x), b.like(1, x))
    magnitude = cast(b, b.op("Where", negative, ones, x), unsigned)
    shifted = b.op("BitShift", magnitude, cast(b, y, unsigned), direction="RIGHT")
    result = cast(b, shifted, x.element)
    return b.op("Where", negative, b.op("Sub", b.op("Neg", result), b.like(1, result)), result)
