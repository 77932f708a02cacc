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
def guarded_division(b: Builder, match: Found, uses: Uses) -> Value | None:
    """A quotient or remainder that a Where only takes if the divisor is not 0. Otherwise the
    guard divides by 1."""
    element = match[QUOTIENT].element
    if element is None or not element.is_integer:
        return None
    quotient, condition, name = match.node(QUOTIENT), match[CONDITION], b.name
    safe = b.where(condition, match[DIVISOR], 1)
    b.name = quotient.name
    again = b.op(quotient.op, match[X], safe, **quotient.attributes)
    b.name = name
    return b.where(condition, again, match[OTHER])
