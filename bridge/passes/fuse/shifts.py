"""Shifts by as many bits as the type has, or more. OpenVINO shifts by the remainder, so the way to
IR adds a guard; ONNX's shift needs no guard."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.terms import Found, is_number, number, op, var
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X = var(where=lambda x: x.element is not None and x.element.kind == "uint")
Y, BITS = var(), var(rank=0)
OUT = op("GreaterOrEqual", Y, BITS).shared()
SHIFT = op("BitwiseLeftShift | BitwiseRightShift", X, op("Where", OUT, number(0, rank=0), Y))


@fuses(op("Where", OUT, number(0, rank=0), SHIFT), SHIFT)
def bit_shift(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Where(y >= bits, 0, x << Where(y >= bits, 0, y)) of unsigned numbers."""
    element = match[X].element
    if element is None or not is_number(match[BITS], element.bits):
        return None
    direction = "LEFT" if match.node(SHIFT).op == "BitwiseLeftShift" else "RIGHT"
    return b.op("BitShift", match[X], match[Y], direction=direction)
