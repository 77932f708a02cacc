"""Comparisons and predicates that only one format has."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import STRING
from bridge.rules import Refused, Result, expands


@expands("NotEqual", target="onnx")
def not_equal(b: Builder, node: Node) -> Result:
    """Not equal."""
    return b.op("Not", b.op("Equal", *node.inputs))


@expands("Equal", "Where", target="ir")
def strings(b: Builder, node: Node) -> Result:
    """OpenVINO neither compares nor selects strings."""
    last = node.inputs[-1]
    if last is not None and last.element is STRING:
        raise Refused("OpenVINO neither compares nor selects strings")
    return None


@expands("IsFinite", target="onnx")
def is_finite(b: Builder, node: Node) -> Result:
    """Neither infinite nor NaN."""
    (x,) = node.inputs
    return b.op("Not", b.op("Or", b.op("IsInf", x), b.op("IsNaN", x)))


@expands("Greater", "GreaterOrEqual", target="ir")
def greater(b: Builder, node: Node) -> Result:
    """The other comparison with the operands exchanged: OpenVINO's CPU plugin (2026.4) takes NaN
    to be greater than anything, but not to be less."""
    x, y = node.inputs
    if x is None or x.element is None or not x.element.is_float:
        return None
    return b.op("Less" if node.op == "Greater" else "LessOrEqual", y, x)
