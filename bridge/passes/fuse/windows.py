"""Windows of pooling."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators.nn.windows import lean
from bridge.passes.fuse.uses import Uses


def lean_window(b: Builder, node: Node, uses: Uses) -> Value | None:
    """MaxPool whose dilations do nothing: IR's versions with indices always spell them out."""
    attributes = node.attributes
    if len(node.outputs) > 1 or not attributes.get("dilations") or lean(attributes)["dilations"]:
        return None
    return b.op("MaxPool", node.inputs[0], **lean(attributes))
