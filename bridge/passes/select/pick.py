"""One of two values, by a condition."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.types import BOOL, F16, F32, I8, I32, U8, Element
from bridge.operators.guarding import pick_by

NARROW = 16
"""Types with at most so many bits are picked as 32 bits: engines lack Where for most of them."""

AS_THEY_ARE = (F16, I8, U8)
"""Narrow types for which engines have Where."""


@pick_by
def pick(b: Builder, condition: Value, one: Value, other: Value) -> Value:
    """One value if the condition, a scalar, is true, else the other of the same shape. Booleans are
    picked with And and Or, since onnxruntime has no Where for them."""
    element = one.element
    if element is BOOL:
        return condition & one | ~condition & other
    wide = wider(element)
    return b.cast(b.where(condition, b.cast(one, wide), b.cast(other, wide)), element)


def wider(element: Element | None) -> Element | None:
    """The type for picking values of a type; it holds all its values."""
    if element is None or element is BOOL or element.bits > NARROW or element in AS_THEY_ARE:
        return element
    return I32 if element.is_integer else F32 if element.kind == "float" else element
