"""Computed integers of few bits: onnxruntime can convert them, but cannot reshape them."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, producer_of
from bridge.passes.uses import Uses


def converted_first(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A conversion of a reshaped value: the conversion goes before the reshape."""
    shaped = producer_of(node.inputs[0], traits=frozenset({"view"}))
    if shaped is None or uses.count(shaped.outputs[0]) > 1:
        return None
    value, *rest = shaped.inputs
    if value is None or value.element is None or value.constant is not None:
        return None
    if value.element.bits >= 8 or value.element.kind not in ("int", "uint"):
        return None
    wide = b.op("Cast", value, **node.attributes)
    return b.op(shaped.op, wide, *rest, **shaped.attributes)
