"""Einsum: both formats have it; OpenVINO takes no blanks in the equation."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import BF16, F32
from bridge.rules import Result, expands
from bridge.rules.idioms import cast


@expands("Einsum", target="ir")
def einsum_to_ir(b: Builder, node: Node) -> Result:
    """The equation without blanks."""
    equation = node.attributes["equation"]
    if " " not in equation:
        return None
    return b.op("Einsum", *node.inputs, equation=equation.replace(" ", ""))


@expands("Einsum", target="onnx")
def einsum_to_onnx(b: Builder, node: Node) -> Result:
    """Einsum takes bfloat16 from operator set 28 on; before, by way of f32."""
    if node.inputs[0] is None or node.inputs[0].element is not BF16 or b.target.opset >= 28:
        return None
    wide = [cast(b, x, F32) for x in node.inputs if x is not None]
    return cast(b, b.op("Einsum", *wide, equation=node.attributes["equation"]), BF16)
