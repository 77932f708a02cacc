"""A selection whose condition is also what it chooses from: the CPU plugin takes the three for one
value of type bool, of which its kernel makes no result."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL, U8
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def choice(b: Builder, node: Node, place: Place) -> Result:
    """Either choice: both are the condition, as it is or as numbers, so they are equal and have its
    shape."""
    condition, one, other = node.inputs
    assert condition is not None and one is not None
    if one.element not in (BOOL, U8):
        return None
    same = condition is _truth(one) is _truth(other)
    return one if same else None


def _truth(value: Value | None) -> Value | None:
    """The truth value that is converted to a value, or that a value is."""
    made = value.producer if value is not None else None
    source = made.inputs[0] if made is not None and made.op == "Cast" else None
    return source if source is not None and source.element is BOOL else value


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Select of which all three inputs are one value of type bool, or that as u8, does "
    'not run ("unsupported dst_prc: boolean").',
    fires="At a Where of bool or u8 whose condition is, or is converted to, both choices.",
    safe="Both choices are one value of the condition's shape.",
    cost="none: the value takes the place of the Select",
    run=rewriting("Where", by=choice),
)
