"""Integer types of shapes, axes and indices: IR takes any, ONNX i64 (or i32 and i64)."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import I32, I64
from bridge.rules import expands
from bridge.rules.idioms import as_i64, cast

ALWAYS_I64 = {
    "Reshape": (1,), "Expand": (1,), "Tile": (1,), "Unsqueeze": (1,), "Squeeze": (1,),
    "Split": (1,), "Pad": (1, 3), "GatherND": (1,), "ScatterND": (1,), "ConstantOfShape": (0,),
    "Resize": (3,), "Col2Im": (1, 2), "AffineGrid": (1,), "ReverseSequence": (1,),
}  # fmt: skip
I32_OR_I64 = {
    "Gather": (1,),
    "GatherElements": (1,),
    "ScatterElements": (1,),
    "Slice": (1, 2, 3, 4),
}
"""Inputs that may be i32 or i64 in ONNX, but all of the same type."""


@expands(*ALWAYS_I64, target="onnx", first=True)
def i64_for_onnx(b: Builder, node: Node) -> list[Value] | None:
    return _recast(b, node, [i for i in ALWAYS_I64[node.op] if _element(node, i) is not I64])


@expands(*I32_OR_I64, target="onnx", first=True)
def same_for_onnx(b: Builder, node: Node) -> list[Value] | None:
    elements = {_element(node, i) for i in I32_OR_I64[node.op] if node.input(i) is not None}
    if elements <= {I32} or elements <= {I64}:
        return None
    return _recast(b, node, [i for i in I32_OR_I64[node.op] if _element(node, i) is not I64])


@expands("Shape", "NonZero", target="onnx", first=True)
def i64_result_for_onnx(b: Builder, node: Node) -> Value | None:
    wanted = node.attributes["output_type"]
    if wanted is I64:
        return None
    return cast(b, b.op(node.op, *node.inputs, **node.attributes | {"output_type": I64}), wanted)


def _element(node: Node, index: int) -> object:
    value = node.input(index)
    return I64 if value is None else value.element


def _recast(b: Builder, node: Node, indices: list[int]) -> list[Value] | None:
    if not indices:
        return None
    inputs = list(node.inputs)
    for index in indices:
        value = inputs[index]
        assert value is not None
        inputs[index] = as_i64(b, value)
    return b.node(node.op, inputs, len(node.outputs), node.attributes).outputs
