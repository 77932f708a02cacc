"""Comparisons with NaN: the kernels for AVX-512 compute Greater as true, but Less as false."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting

NAME = "bridge_exchanged"
MARK = f'<attribute name="{NAME}" version="0"/>'
"""The key in the rt_info of an operator with exchanged operands. OpenVINO ignores it."""

EXCHANGED = {
    "Greater": "Less", "GreaterOrEqual": "LessOrEqual", "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
}  # fmt: skip
"""The comparison that gives the same result for exchanged operands. Other operators stay."""


def exchanged(b: Builder, node: Node, place: Place) -> Result:
    """The mirrored comparison with exchanged operands, marked for the way back."""
    x, y = node.inputs
    if x is None or x.element is None or not x.element.is_float:
        return None
    return b.node(EXCHANGED[node.op], [y, x], extras={"rt_info": MARK}).outputs[0]


def exchanged_again(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The original operator, from a marked one with exchanged operands."""
    if NAME not in (node.extras or {}).get("rt_info", ""):
        return None
    x, y = node.inputs
    return b.op(EXCHANGED.get(node.op, node.op), y, x)


QUIRK = Quirk(
    releases="2026.4",
    symptom="Greater and GreaterEqual with NaN are true on CPUs with AVX-512.",
    issue="https://github.com/openvinotoolkit/openvino/issues/31196",
    fires="At a Greater or GreaterOrEqual of floats.",
    safe="x > y and y < x are the same, for NaN too.",
    cost="none: the operands are exchanged, and rt_info records it",
    run=rewriting("Greater", "GreaterOrEqual", by=exchanged),
    undo={"Less": exchanged_again, "LessOrEqual": exchanged_again},
)
