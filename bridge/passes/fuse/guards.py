"""Divisions of integers by a possible 0, which OpenVINO computes and onnxruntime refuses."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.terms import Found, op, var
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X, DIVISOR, OTHER = var(), var(), var()
QUOTIENT = op("Div | Mod | ir::Mod", X, DIVISOR)
IS_ZERO = op("Equal", DIVISOR, 0).shared()
CONDITION = op("Greater | NotEqual", DIVISOR, 0).shared() | op("Not", IS_ZERO).shared()
"""That the divisor is not 0, or that it is above."""


@fuses(op("Where", CONDITION, QUOTIENT, OTHER))
def guarded_division(b: Builder, found: Found, uses: Uses) -> Value | None:
    """A quotient or remainder that a Where only takes if the divisor is not 0. Otherwise the
    guard divides by 1."""
    element = found[QUOTIENT].element
    if element is None or not element.is_integer:
        return None
    made, condition, name = found.node(QUOTIENT), found[CONDITION], b.name
    safe = b.where(condition, found[DIVISOR], 1)
    b.name = made.name
    again = b.op(made.op, found[X], safe, **made.attributes)
    b.name = name
    return b.where(condition, again, found[OTHER])
