"""Comparisons that were written the other way round for an engine."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.passes.fuse.uses import Uses

NAME = "bridge_exchanged"
MARK = f'<attribute name="{NAME}" version="0" />'
"""What the rt_info of a comparison says whose operands were exchanged; OpenVINO passes it over."""

EXCHANGED = {
    "Greater": "Less", "GreaterOrEqual": "LessOrEqual", "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
}  # fmt: skip
"""The comparison that gives the same of the operands in the other order."""


def exchanged_again(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A comparison whose operands were exchanged, as it was."""
    if NAME not in (node.extras or {}).get("rt_info", ""):
        return None
    x, y = node.inputs
    b.name = node.name
    return b.op(EXCHANGED[node.op], y, x)
