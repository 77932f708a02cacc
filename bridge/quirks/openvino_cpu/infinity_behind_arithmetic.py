"""IsInf of what is computed element by element, of open shape: the CPU plugin makes one kernel of
both, which finds no infinity."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BF16, F16, F32, is_static
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def compared_with_infinity(b: Builder, node: Node, place: Place) -> Result:
    """A comparison in f32, since the plugin makes infinities of other types finite. Numbers of f64
    are left: in f32 more of them would be infinite."""
    (x,) = node.inputs
    assert x is not None
    is_input = place.holder is None and x in place.graph.inputs
    if is_static(x.shape) or is_input or x.element not in (BF16, F16, F32):
        return None
    found: Value | None = None
    for wanted, sign in (("detect_positive", 1), ("detect_negative", -1)):
        if node.attributes[wanted]:
            infinity = b.constant(np.float32(sign * np.inf), F32)
            equal = b.cast(x, F32).equal(infinity)
            found = equal if found is None else found | equal
    return found


QUIRK = Quirk(
    releases="2026.4",
    symptom="IsInf behind arithmetic of open shape is false everywhere.",
    fires="At an IsInf of a value of f32, f16 or bf16 of open shape that is no input of the model.",
    safe="f32 has all numbers of the three types, and equals an infinity where these are infinite.",
    cost="two comparisons for an IsInf",
    run=rewriting("IsInf", by=compared_with_infinity),
)
