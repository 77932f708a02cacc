"""And, Max, Min and Or of a value with itself."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result, legalizes


@legalizes("And", "Max", "Min", "Or", target="onnx")
def of_itself(b: Builder, node: Node) -> Result:
    """A value combined with itself is the value: what IR writes for a copy (`passes/copies.py`),
    for which onnxruntime (1.31) lacks element types."""
    first, *others = node.inputs
    return first if others and all(value is first for value in others) else None
