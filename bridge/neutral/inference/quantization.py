"""Quantisation."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers, same
from bridge.neutral.inference.matmul import product
from bridge.neutral.types import F32, U8, TensorType, Type, broadcast

infers("FakeConvert")(same)


@infers("FakeQuantize")
def fake_quantize(node: Node) -> list[Type]:
    data = first(node)
    shape = broadcast(data.shape, *(first(node, i).shape for i in range(1, 5)))
    return [TensorType(data.element, shape)]


@infers("QuantizeLinear")
def quantize_linear(node: Node) -> list[Type]:
    zero_point = node.input(2)
    element = U8 if zero_point is None else zero_point.element
    return [TensorType(node.attributes.get("output_dtype") or element, first(node).shape)]


@infers("DequantizeLinear")
def dequantize_linear(node: Node) -> list[Type]:
    element = node.attributes.get("output_dtype") or first(node, 1).element
    return [TensorType(element, first(node).shape)]


@infers("DynamicQuantizeLinear")
def dynamic_quantize_linear(node: Node) -> list[Type]:
    return [TensorType(U8, first(node).shape), TensorType(F32, ()), TensorType(U8, ())]


@infers("QLinearMatMul")
def qlinear_matmul(node: Node) -> list[Type]:
    return [TensorType(first(node, 7).element, product(first(node).shape, first(node, 3).shape))]
