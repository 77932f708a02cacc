"""Comparisons with NaN, which is greater than anything in the kernels for AVX-512, but not less."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.passes.fuse.comparisons import EXCHANGED, MARK
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def exchanged(b: Builder, node: Node, place: Place) -> Result:
    """The other comparison, with the operands exchanged, marked for the way back."""
    x, y = node.inputs
    if x is None or x.element is None or not x.element.is_float:
        return None
    return b.node(EXCHANGED[node.op], [y, x], extras={"rt_info": MARK}).outputs[0]


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="Greater and GreaterEqual with NaN are true, on CPUs with AVX-512.",
    issue="https://github.com/openvinotoolkit/openvino/issues/31196",
    cost="none: the operands are exchanged, which rt_info says",
    run=rewriting("Greater", "GreaterOrEqual", by=exchanged),
)
