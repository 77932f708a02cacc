"""Identity, and what is none but by name."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.rules import Result, expands


@expands("Identity", target="ir")
def nothing(b: Builder, node: Node) -> Result:
    """A value of IR has as many names as it takes, so nothing is left of an Identity. IR's own, of
    operator set 16, was long not run by OpenVINO's CPU plugin (2025.2)."""
    return node.inputs[0]


@expands("And", "Max", "Min", "Or", target="onnx")
def of_itself(b: Builder, node: Node) -> Result:
    """A value combined with itself is the value: what IR writes for a copy (`passes/copies.py`),
    for which onnxruntime (1.31) lacks element types."""
    first, *others = node.inputs
    return first if others and all(value is first for value in others) else None
