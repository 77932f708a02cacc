"""A power of integers. The GPU plugin has it for floats alone."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import F32
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def in_floats(b: Builder, node: Node, place: Place) -> Result:
    """The power in f32, rounded."""
    base, exponent = node.inputs
    if base is None or exponent is None or base.element is None or not base.element.is_integer:
        return None
    power = b.op("Pow", b.cast(base, F32), b.cast(exponent, F32))
    return b.cast(b.op("Round", power), base.element)


QUIRK = Quirk(
    releases="2026.4",
    symptom='A Power of integers does not compile ("Requested eltwise mode is not supported for '
    'integer types").',
    fires="At a Pow of integers that `power_of_integers` has not made of products.",
    safe="f32 holds integers up to 2^24. The CPU plugin computes in f32, too.",
    cost="two or three Converts and a Round; they stay on the way back to ONNX",
    run=rewriting("Pow", by=in_floats),
)
