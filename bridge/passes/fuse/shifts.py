"""Shifts by as many bits as the type has: OpenVINO shifts by the remainder, so that the way to IR
guards them; ONNX's shift needs no guard."""

from __future__ import annotations

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.passes.fuse.uses import Uses


def bit_shift(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Where(y >= bits, 0, x << Where(y >= bits, 0, y)) of numbers without a sign."""
    out, zero, shifted = node.inputs
    shift = uses.single_use(shifted, "BitwiseLeftShift", "BitwiseRightShift")
    guard = uses.single_use(shift.inputs[1], "Where") if shift is not None else None
    asked = out.producer if out is not None else None
    if shift is None or guard is None or asked is None or asked.op != "GreaterOrEqual":
        return None
    x, y = shift.inputs[0], asked.inputs[0]
    if x is None or x.element is None or x.element.kind != "uint":
        return None
    if guard.inputs[0] is not out or guard.inputs[2] is not y:
        return None
    if not all(_is(value, 0) for value in (zero, guard.inputs[1])):
        return None
    if not _is(asked.inputs[1], x.element.bits):
        return None
    b.name = shift.name
    direction = "LEFT" if shift.op == "BitwiseLeftShift" else "RIGHT"
    return b.op("BitShift", x, y, direction=direction)


def _is(value: Value | None, number: int) -> bool:
    known = values_of(value)
    return known is not None and known.shape == () and known == number
