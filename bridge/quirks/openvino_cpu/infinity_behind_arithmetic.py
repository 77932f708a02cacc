"""IsInf behind elementwise arithmetic of open shape. The CPU plugin fuses both into one kernel,
which finds no infinity."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BF16, F16, F32, is_static
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def compared_with_infinity(b: Builder, node: Node, place: Place) -> Result:
    """A comparison with infinity in f32.

    The plugin makes infinite constants of other types finite. Values of f64 stay as they are,
    because f32 would make more of them infinite.
    """
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
    symptom="IsInf behind arithmetic of open shape is always false.",
    fires="At an IsInf of an f32, f16 or bf16 value of open shape that is not an input of the "
    "model.",
    safe="f32 has all numbers of the three types, and the same infinities.",
    cost="two comparisons for an IsInf",
    run=rewriting("IsInf", by=compared_with_infinity),
)
