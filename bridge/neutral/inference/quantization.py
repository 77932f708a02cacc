"""Quantisation."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers, same
from bridge.neutral.types import F32, I32, U8, TensorType, Type, broadcast

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


@infers("MatMulInteger", "QLinearMatMul")
def matmul(node: Node) -> list[Type]:
    linear = node.op == "QLinearMatMul"
    a, b = first(node).shape, first(node, 3 if linear else 1).shape
    element = first(node, 7).element if linear else I32
    if a is None or b is None or not a or not b:
        return [TensorType(element)]
    left = a[:-1] if len(a) > 1 else ()
    right = b[-1:] if len(b) > 1 else ()
    batch = broadcast(a[:-2], b[:-2])
    assert batch is not None
    return [TensorType(element, (*batch, *left[-1:], *right))]
