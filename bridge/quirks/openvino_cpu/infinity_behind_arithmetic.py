"""IsInf of what is computed element by element, of open shape: the CPU plugin makes one kernel of
both, which finds no infinity."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, is_static
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def compared_with_infinity(b: Builder, node: Node, place: Place) -> Result:
    """A comparison; in f32, since the plugin makes wider and narrower infinities finite."""
    (x,) = node.inputs
    assert x is not None
    if is_static(x.shape):
        return None
    found: Value | None = None
    for wanted, sign in (("detect_positive", 1), ("detect_negative", -1)):
        if node.attributes[wanted]:
            infinity = b.constant(np.float32(sign * np.inf), F32)
            equal = b.op("Equal", b.cast(x, F32), infinity)
            found = equal if found is None else b.op("Or", found, equal)
    return found


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="IsInf behind arithmetic of open shape is false everywhere.",
    cost="two comparisons for an IsInf",
    run=rewriting("IsInf", by=compared_with_infinity),
)
