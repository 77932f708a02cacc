"""8-bit arithmetic, which wraps around in ONNX."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import ELEMENTS, I32
from bridge.operators import Result, expands
from bridge.operators.idioms import cast


@expands("Add", "Div", "Mul", "Sub", target="ir")
def wrapping(b: Builder, node: Node) -> Result:
    """8-bit arithmetic wraps around in ONNX; OpenVINO saturates, and rounds quotients where shapes
    are dynamic."""
    a, other = node.inputs
    assert a is not None and other is not None
    if a.element not in (ELEMENTS["i8"], ELEMENTS["u8"]):
        return None
    wide = b.op(node.op, cast(b, a, I32), cast(b, other, I32), **node.attributes)
    return cast(b, wide, a.element)
