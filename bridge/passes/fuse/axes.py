"""Axes that a node leaves to the shape of its input."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import is_static
from bridge.passes.fuse.uses import Uses


def axes_of_one(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Squeeze without axes, of a known shape, with them, as on the way to IR."""
    value = node.inputs[0]
    if value is None or node.input(1) is not None or not is_static(value.shape):
        return None
    axes = [axis for axis, size in enumerate(value.shape) if size == 1]
    return b.op("Squeeze", value, b.constant(axes)) if axes else None
