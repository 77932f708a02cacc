"""Comparisons and predicates that only IR has."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import STRING
from bridge.rules import Refused, Result, expands


@expands("NotEqual", target="onnx")
def not_equal(b: Builder, node: Node) -> Result:
    """Not equal."""
    return b.op("Not", b.op("Equal", *node.inputs))


@expands("Equal", target="ir")
def strings(b: Builder, node: Node) -> Result:
    """OpenVINO compares no strings."""
    first = node.inputs[0]
    if first is not None and first.element is STRING:
        raise Refused("OpenVINO compares no strings")
    return None


@expands("IsFinite", target="onnx")
def is_finite(b: Builder, node: Node) -> Result:
    """Neither infinite nor NaN."""
    (x,) = node.inputs
    return b.op("Not", b.op("Or", b.op("IsInf", x), b.op("IsNaN", x)))
