"""Weights of few bits in blocks, in the layouts of which onnxruntime has a kernel: MatMulNBits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import F32, I4, U2, U4, U8
from bridge.operators.idioms import as_bits
from bridge.passes.recompose.uses import Uses

DOMAIN = "com.microsoft"

SMALLEST_BLOCK = 16
"""The smallest block that MatMulNBits has; all are powers of 2."""


def matmul_n_bits(b: Builder, node: Node, uses: Uses) -> Value | None:
    """MatMulNBits, where the model had operators of its domain before: a product with the
    transpose of a constant matrix [N, K] in blocks along K, which need not fill the last one."""
    x, y = node.inputs
    assert x is not None and b.target is not None
    flags = node.attributes
    if DOMAIN not in b.target.domains or x.element is not F32 or flags["transpose_a"]:
        return None
    weights, length = _uncut(y, uses)
    found = None if weights is None or not flags["transpose_b"] else _in_rows(weights)
    if weights is None or found is None:
        return None
    numbers, size, bits = found.numbers, found.size, found.numbers.element.bits
    columns, width = numbers.shape
    blocks = width // size
    b.name = weights.name
    inputs = [
        x,
        as_bits(b, numbers, U8, columns, blocks, size * bits // 8),
        b.tensor(Tensor(F32, (columns * blocks,), found.scale.source)),
    ]
    zeros = np.zeros(columns * blocks) if found.zero_point is None else found.zero_point.array()
    if not (zeros == 1 << bits - 1).all():
        whole = np.zeros((columns, -(-blocks * bits // 8) * 8 // bits), numbers.element.dtype)
        whole[:, :blocks] = zeros.reshape(columns, blocks)
        inputs.append(as_bits(b, Tensor.of(whole), U8, whole.size * bits // 8))
    return b.op(
        f"{DOMAIN}::MatMulNBits", *inputs, K=length or width, N=columns, bits=bits, block_size=size
    )


def _uncut(value: Value | None, uses: Uses) -> tuple[Node | None, int]:
    """The weights that make a value, and how many columns of them are taken (0: all)."""
    cut = uses.sole(value, "Slice")
    if cut is None:
        return uses.sole(value, "DequantizeLinear"), 0
    start, end, axes, step = (integers(cut.input(i)) for i in range(1, 5))
    if start != (0,) or end is None or axes not in ((1,), (-1,)) or step not in (None, (1,)):
        return None, 0
    return uses.sole(cut.inputs[0], "DequantizeLinear"), end[0]


@dataclass(frozen=True)
class _Rows:
    """A matrix in blocks of `size` along its rows, in the types that MatMulNBits takes."""

    numbers: Tensor
    scale: Tensor
    zero_point: Tensor | None
    size: int


def _in_rows(weights: Node) -> _Rows | None:
    tensors = [None if value is None else value.constant for value in weights.inputs]
    numbers, scale, zero_point = (*tensors, None)[:3]
    if numbers is None or scale is None or None in tensors or len(numbers.shape) != 2:
        return None
    if numbers.element not in (U2, U4, U8) or scale.element is not F32:
        return None
    rows, width = numbers.shape
    size, axis = weights.attributes["block_size"], weights.attributes["axis"] % 2
    if not size and axis == 0 and scale.shape == (rows,):
        size, axis = width, 1  # A row is one block.
    if axis != 1 or size < SMALLEST_BLOCK or size & (size - 1) or width % size:
        return None
    return _Rows(numbers, scale, zero_point, size) if scale.size * size == rows * width else None


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
