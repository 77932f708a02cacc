"""Shifts with different names in the formats, and bitwise operators on booleans and in old ONNX."""

from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, ELEMENTS
from bridge.operators import Builder, Node, Refused, Result, legalizes, required

_LOGICAL = {
    "BitwiseAnd": "And",
    "BitwiseNot": "Not",
    "BitwiseOr": "Or",
    "BitwiseXor": "Xor",
}


@legalizes(*_LOGICAL, target="onnx")
def on_booleans(b: Builder, node: Node) -> Result:
    """BitwiseAnd-18, BitwiseNot-18, BitwiseOr-18 and BitwiseXor-18. IR's bitwise operators accept
    booleans, but ONNX has separate operators for them."""
    return b.op(_LOGICAL[node.op], *node.inputs) if node.operand(0).element is BOOL else None


@legalizes("BitShift", target="ir")
def bit_shift(b: Builder, node: Node) -> Result:
    """BitShift (11 to 28): IR has one operator for each direction. In ONNX, a negative shift, or a
    shift by at least the width of the type, removes all bits. IR does not define these cases."""
    x, y = required(node, 0, 1)
    left = node.attributes["direction"] == "LEFT"
    op = "BitwiseLeftShift" if left else "BitwiseRightShift"
    if x.element is None:
        return b.op(op, x, y)
    bits = x.element.bits
    known = known_of(y).array
    if known is not None and ((known >= 0) & (known < bits)).all():
        return b.op(op, x, y)
    out = y >= bits
    if x.element.is_signed:
        out |= y < 0
    if not left and x.element.is_signed:
        return b.op(op, x, b.where(out, bits - 1, y))
    return b.where(out, b.like(0, x), b.op(op, x, b.where(out, 0, y)))


@legalizes("BitwiseLeftShift", "BitwiseRightShift", target="onnx")
def bitwise_shift(b: Builder, node: Node) -> Result:
    """BitwiseLeftShift-15 and BitwiseRightShift-15 are ONNX's BitShift. It accepts signed integers
    only since operator set 28. Before, a left shift is a product with a power of two. A right shift
    is a division by a power of two that rounds down."""
    x, y = required(node, 0, 1)
    left = node.op == "BitwiseLeftShift"
    direction = "LEFT" if left else "RIGHT"
    if x.element is None or x.element.kind == "uint" or b.opset >= 28:
        return b.op("BitShift", x, y, direction=direction)
    if x.element.kind != "int":
        raise Refused(f"ONNX cannot shift {x.element}")
    unsigned = ELEMENTS[x.element.name.replace("i", "u")]
    if left:
        one = b.constant(1, unsigned)
        return x * b.cast(b.op("BitShift", one, b.cast(y, unsigned), direction="LEFT"), x.element)
    negative = x < 0
    # The complement of a negative number is not negative, so that an unsigned shift is correct.
    magnitude = b.cast(b.where(negative, -x - 1, x), unsigned)
    shifted = b.op("BitShift", magnitude, b.cast(y, unsigned), direction="RIGHT")
    result = b.cast(shifted, x.element)
    return b.where(negative, -result - 1, result)
