"""4-bit weights of a matrix product, in the layout of which onnxruntime makes MatMulNBits."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import I4, U4
from bridge.passes.recompose.uses import Uses


def upright_weights(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A product with the transpose of a constant matrix in blocks: IR has the output channels
    first, ONNX, without transposing, the input's, and onnxruntime fuses it so alone."""
    weights = uses.sole(node.inputs[1], "DequantizeLinear")
    flags = node.attributes
    if weights is None or not flags["transpose_b"] or flags["transpose_a"]:
        return None
    if not weights.attributes.get("block_size") or weights.attributes["axis"] % 2 != 1:
        return None
    tensors = [None if value is None else value.constant for value in weights.inputs]
    if any(t is None or len(t.shape) != 2 for t in tensors):
        return None
    known = [tensor for tensor in tensors if tensor is not None]
    if known[0].element not in (I4, U4):
        return None
    turned = [_turned(b, tensor) for tensor in known]
    name, b.name = b.name, weights.name
    y = b.op("DequantizeLinear", *turned, **{**weights.attributes, "axis": 0})
    b.name = name
    return b.op("MatMul", node.inputs[0], y)


def _turned(b: Builder, tensor: Tensor) -> Value:
    """The transpose of a matrix."""
    rows, columns = tensor.shape
    array = np.ascontiguousarray(tensor.array().T)
    return b.tensor(Tensor(tensor.element, (columns, rows), array))
