"""Unique and NonZero."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I64
from bridge.rules import Refused, expands
from bridge.rules.idioms import cast, scalar


@expands("Unique", target="ir")
def unique_for_ir(b: Builder, node: Node) -> list[Value] | None:
    """Unique-10 has all four outputs."""
    if len(node.outputs) == 4:
        return None
    return b.ops("Unique", 4, *node.inputs, **node.attributes)[: len(node.outputs)]


@expands("Unique", target="onnx")
def unique_for_onnx(b: Builder, node: Node) -> list[Value] | None:
    """ONNX counts in i64."""
    axis = node.input(1)
    if axis is not None and integers(axis) is None:
        raise Refused("its axis must be a constant")
    names = ("index_element_type", "count_element_type")
    indices, counts = (node.attributes[name] for name in names)
    if indices is I64 and counts is I64:
        return None
    axis = None if axis is None else scalar(b, axis)
    made = b.ops("Unique", 4, node.inputs[0], axis, sorted=node.attributes["sorted"])
    wanted = (None, indices, indices, counts)
    return [
        value if element is None else cast(b, value, element)
        for value, element in zip(made, wanted, strict=True)
    ]
