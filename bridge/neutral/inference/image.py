"""Colours."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, Dim, TensorType, Type


@infers("I420toBGR", "I420toRGB", "NV12toBGR", "NV12toRGB")
def from_planes(node: Node) -> list[Type]:
    """[N, H, W, 3] from planes, or from one tensor with half as many rows of colours behind."""
    luma = first(node)
    if luma.shape is None or len(luma.shape) != 4:
        return [TensorType(luma.element, (ANY, ANY, ANY, 3))]
    batch, height, width, _ = luma.shape
    if len(node.inputs) == 1:
        rows: Dim = height * 2 // 3 if isinstance(height, int) else ANY
        height = rows
    return [TensorType(luma.element, (batch, height, width, 3))]
