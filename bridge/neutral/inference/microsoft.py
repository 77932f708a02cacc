"""Quantised operators of onnxruntime's own domain, com.microsoft."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.inference.matmul import product, swapped
from bridge.neutral.inference.nn import pool
from bridge.neutral.inference.quantization import dequantize_linear, quantize_linear
from bridge.neutral.types import ANY, F32, U8, Dim, TensorType, Type, broadcast

infers("com.microsoft::QuantizeLinear")(quantize_linear)
infers("com.microsoft::DequantizeLinear")(dequantize_linear)


@infers("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul")
def qlinear_arithmetic(node: Node) -> list[Type]:
    data = first(node)
    return [TensorType(data.element, broadcast(data.shape, first(node, 3).shape))]


@infers(
    "com.microsoft::QLinearSigmoid", "com.microsoft::QLinearLeakyRelu",
    "com.microsoft::QLinearSoftmax",
)  # fmt: skip
def qlinear_activation(node: Node) -> list[Type]:
    return [first(node)]


@infers("com.microsoft::QLinearConcat")
def qlinear_concat(node: Node) -> list[Type]:
    parts = [first(node, i).shape for i in range(2, len(node.inputs), 3)]
    element = first(node, 2).element
    if any(part is None for part in parts):
        return [TensorType(element)]
    axis, total = node.attributes["axis"] % len(parts[0] or ()), 0
    shape: list[Dim] = list(parts[0] or ())
    for part in parts:
        size = (part or ())[axis]
        total = total + size if isinstance(size, int) and total >= 0 else -1
    shape[axis] = total if total >= 0 else ANY
    return [TensorType(element, tuple(shape))]


@infers("com.microsoft::QLinearReduceMean")
def qlinear_reduce_mean(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    rank = len(data.shape)
    axes = {axis % rank for axis in node.attributes.get("axes") or range(rank)}
    shape: tuple[Dim, ...] = tuple(1 if i in axes else d for i, d in enumerate(data.shape))
    if not node.attributes.get("keepdims", 1):
        shape = tuple(d for i, d in enumerate(data.shape) if i not in axes)
    return [TensorType(data.element, shape)]


@infers("com.microsoft::QLinearGlobalAveragePool")
def qlinear_global_average_pool(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    start = 1 if node.attributes.get("channels_last", 0) else 2
    spatial = range(start, start + len(data.shape) - 2)
    pooled = tuple(1 if i in spatial else d for i, d in enumerate(data.shape))
    return [TensorType(data.element, pooled)]


@infers("com.microsoft::QLinearAveragePool")
def qlinear_average_pool(node: Node) -> list[Type]:
    if not node.attributes.get("channels_last", 0):
        return list(pool(node))
    data = first(node)
    return [TensorType(data.element, data.shape and (ANY,) * len(data.shape))]


@infers("com.microsoft::QGemm")
def qgemm(node: Node) -> list[Type]:
    left = swapped(first(node).shape, bool(node.attributes.get("transA", 0)))
    right = swapped(first(node, 3).shape, bool(node.attributes.get("transB", 0)))
    element = F32 if node.input(7) is None else first(node, 8).element or U8
    return [TensorType(element, product(left, right))]


@infers("com.microsoft::MatMulIntegerToFloat")
def matmul_integer_to_float(node: Node) -> list[Type]:
    shape = product(first(node).shape, first(node, 1).shape)
    return [TensorType(first(node, 2).element, shape)]


@infers("com.microsoft::DynamicQuantizeMatMul")
def dynamic_quantize_matmul(node: Node) -> list[Type]:
    return [TensorType(first(node).element, product(first(node).shape, first(node, 1).shape))]


@infers("com.microsoft::MatMulNBits")
def matmul_n_bits(node: Node) -> list[Type]:
    data = first(node)
    shape = None if data.shape is None else (*data.shape[:-1], node.attributes["N"])
    return [TensorType(data.element, shape)]
