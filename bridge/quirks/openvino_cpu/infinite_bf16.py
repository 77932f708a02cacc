"""Infinities of bf16 on a processor without instructions for bf16.

The CPU plugin then computes in f32, and replaces infinities in constants by the largest numbers of
f32.
"""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BF16
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

LARGEST_BF16 = np.float32(0xFF * 2.0**120)
"""The greatest finite number of bf16."""


def beyond_finite(b: Builder, node: Node, place: Place) -> Result:
    """A comparison with the greatest finite number of bf16 instead of an infinity.

    In the plugin, a constant infinity is the largest number of f32, and an infinity computed at run
    time stays infinite. The two are not equal. Both lie beyond the finite numbers of bf16.
    """
    for x, other in (node.inputs, reversed(node.inputs)):
        assert x is not None and other is not None
        bound = known_of(other.behind("Cast", "CastLike")).array
        if x.element is not BF16 or bound is None or not bound.size:
            continue
        numbers = bound.astype(np.float32)
        if np.isinf(numbers).all() and np.unique(numbers).size == 1:
            limits = b.like(np.copysign(LARGEST_BF16, numbers), x)
            return x < limits if numbers.flat[0] < 0 else limits < x
    return None


QUIRK = Quirk(
    releases="2026.4, on processors without AVX-512",
    symptom="An infinite constant of bf16 does not equal a computed infinity.",
    fires="At an Equal of a bf16 value and a constant with one kind of infinity.",
    safe="In bf16, only an infinity lies beyond the greatest finite number. NaN compares false in "
    "both ways.",
    cost="none: a Less for an Equal",
    run=rewriting("Equal", by=beyond_finite),
)
