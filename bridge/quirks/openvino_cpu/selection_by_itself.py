"""A selection whose condition is also both of its choices.

The CPU plugin treats all three inputs as one value of type bool. Its kernel does not support
results of this type.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL, U8
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def choice(b: Builder, node: Node, place: Place) -> Result:
    """One of the choices. Both are the condition, perhaps as numbers, so they are equal and have
    its shape."""
    condition, one, other = node.inputs
    assert condition is not None and one is not None
    if one.element not in (BOOL, U8):
        return None
    same = condition is _truth(one) is _truth(other)
    return one if same else None


def _truth(value: Value | None) -> Value | None:
    """The truth value before its conversion to numbers, or the value itself."""
    made = value.producer if value is not None else None
    source = made.inputs[0] if made is not None and made.op == "Cast" else None
    return source if source is not None and source.element is BOOL else value


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Select does not run if all three inputs are one value of type bool, or this value "
    'converted to u8 ("unsupported dst_prc: boolean").',
    fires="At a Where of bool or u8, if both choices are the condition or a conversion of it.",
    safe="Both choices are one value with the shape of the condition.",
    cost="none: the value replaces the Select",
    run=rewriting("Where", by=choice),
)
