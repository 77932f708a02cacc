"""Absolute values."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result, expands


@expands("Abs", target="ir")
def abs_of_vector(b: Builder, node: Node) -> Result:
    """OpenVINO (2026.4, openvino#38166) drops the Abs of a vector that it can compute beforehand,
    which a Loop or an If that it opens may make of any; of a matrix it does not."""
    (x,) = node.inputs
    if x is None or x.rank != 1 or x.constant is not None:
        return None
    axis = b.constant([0])
    return b.op("Squeeze", b.op("Abs", b.op("Unsqueeze", x, axis)), axis)
