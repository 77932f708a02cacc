"""Windows of pooling."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.terms import Found, op, var
from bridge.operators.nn.windows import lean
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X = var()
POOL = op("MaxPool", X)


@fuses(POOL)
def lean_window(b: Builder, match: Found, uses: Uses) -> Value | None:
    """MaxPool with dilations of 1: IR's versions with indices always spell them out."""
    node = match.node(POOL)
    if len(node.outputs) > 1 or not node.attributes.get("dilations"):
        return None
    leaner = lean(node.attributes)
    return None if leaner["dilations"] else b.op("MaxPool", match[X], **leaner)
