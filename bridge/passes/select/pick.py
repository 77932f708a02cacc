"""One of two values, by a condition."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import BF16, BOOL, F32, I16, I32, U16

RUNS_IN = {I16: I32, U16: I32, BF16: F32}
"""Element types that onnxruntime has no Where for, and wider ones that it has."""


def pick(b: Builder, condition: Value, one: Value, other: Value) -> Value:
    """One value where the condition, a scalar, is true, else the other, which has its shape. Truth
    values are picked by logic, since onnxruntime has no Where for them."""
    element = one.element
    if element is BOOL:
        kept = b.op("And", condition, one)
        return b.op("Or", kept, b.op("And", b.op("Not", condition), other))
    wide = RUNS_IN.get(element) if element is not None and b.opset else None
    if wide is not None:
        one, other = b.cast(one, wide), b.cast(other, wide)
    return b.cast(b.op("Where", condition, one, other), element)
