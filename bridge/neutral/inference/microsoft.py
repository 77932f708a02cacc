"""Operators of onnxruntime's own domain, com.microsoft: what they give is what their rule makes."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.graph import Node
from bridge.neutral.types import UNKNOWN, Type

DOMAIN = "com.microsoft::"


def infer_by_rule(node: Node) -> Sequence[Type]:
    """Types of what the rule for IR makes of the node; [] where there is none, or it refuses."""
    from bridge.neutral.builder import Builder, Target
    from bridge.rules import Refused, expansions

    target = Target("ir")
    for rule in expansions(target.format, node.op):
        try:
            made = rule(Builder([], node.name, target), node)
        except Refused:
            return []
        if made is not None:
            values = made if isinstance(made, Sequence) else [made]
            return [UNKNOWN if value is None else value.type for value in values]
    return []
