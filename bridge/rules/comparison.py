"""Comparisons and predicates that only IR has."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.rules import Result, expands


@expands("NotEqual", target="onnx")
def not_equal(b: Builder, node: Node) -> Result:
    """Not equal."""
    return b.op("Not", b.op("Equal", *node.inputs))


@expands("IsFinite", target="onnx")
def is_finite(b: Builder, node: Node) -> Result:
    """Neither infinite nor NaN."""
    (x,) = node.inputs
    return b.op("Not", b.op("Or", b.op("IsInf", x), b.op("IsNaN", x)))
