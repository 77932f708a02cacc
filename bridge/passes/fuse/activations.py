"""Activation functions that IR has in a more general form, or in parts: LeakyRelu and Clip."""

from __future__ import annotations

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, F64, I8, I32, I64, U8
from bridge.passes.fuse.uses import Uses, either_way

_CLIPPED = (F32, F64, I8, U8, I32, I64)
"""What onnxruntime clips."""


def leaky_relu(b: Builder, node: Node, uses: Uses) -> Value | None:
    """PRelu with one slope for all, of the shape that LeakyRelu's has in IR."""
    x, slope = node.inputs
    known = values_of(slope) if slope is not None and slope.shape in ((), (1,)) else None
    return None if known is None else b.op("LeakyRelu", x, alpha=float(known.reshape(())))


def clip(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The lesser of an upper bound and the greater of a lower one, both scalars."""
    assert b.target is not None
    if len(node.inputs) != 2 or b.target.opset < 12:
        return None
    for value, upper in either_way(node):
        inner = uses.single_use(value, "Max")
        if inner is None or len(inner.inputs) != 2 or upper.rank != 0:
            continue
        for x, lower in either_way(inner):
            if lower.rank == 0 and x.rank and x.element in _CLIPPED:
                b.name = inner.name
                return b.op("Clip", x, *(_nameless(b, bound) for bound in (lower, upper)))
    return None


def _nameless(b: Builder, bound: Value) -> Value:
    """A bound; a constant one without its name, for IR's Clamp has none for it."""
    return bound if bound.constant is None else b.tensor(bound.constant)
