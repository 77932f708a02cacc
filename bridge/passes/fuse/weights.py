"""Blocks of few-bit weights, in the layouts for which onnxruntime has a kernel: MatMulNBits."""

from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import F32, U2, U4, U8
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

DOMAIN = "com.microsoft"

SMALLEST_BLOCK = 16
"""The smallest block that MatMulNBits has; all are powers of 2."""


X = var(F32)
WEIGHTS = op("DequantizeLinear")
CUT = op("Slice", WEIGHTS)
PRODUCT = op("MatMul", X, CUT | WEIGHTS, transpose_a=False, transpose_b=True)


@fuses(PRODUCT, WEIGHTS)
def matmul_n_bits(b: Builder, match: Found, uses: Uses) -> Value | None:
    """MatMulNBits, if the model already uses operators of its domain. It is a product with the
    transpose of a constant matrix [N, K] in blocks along K; the last block may be shorter."""
    if DOMAIN not in b.domains:
        return None
    length, rows = 0, _in_rows(match.node(WEIGHTS))
    if CUT in match:
        start, end, axes, step = (known_of(match.node(CUT).input(i)).ints for i in range(1, 5))
        if start != (0,) or end is None or axes not in ((1,), (-1,)) or step not in (None, (1,)):
            return None
        length = end[0]
    if rows is None:
        return None
    numbers, size = rows.numbers, rows.size
    tensor, zero_point = numbers.known_constant, rows.zero_point
    bits, (columns, width) = tensor.element.bits, tensor.shape
    blocks = width // size
    inputs = [
        match[X],
        b.as_bits(numbers, U8, columns, blocks, size * bits // 8),
        b.of_shape(rows.scale, (columns * blocks,)),
    ]
    zeros = known_of(zero_point).array if zero_point is not None else np.zeros(columns * blocks)
    if zeros is not None and not (zeros == 1 << bits - 1).all():
        whole = np.zeros((columns, -(-blocks * bits // 8) * 8 // bits), tensor.element.dtype)
        whole[:, :blocks] = zeros.reshape(columns, blocks)
        packed = b.tensor(Tensor.of(whole), [] if zero_point is None else zero_point.names[:])
        inputs.append(b.as_bits(packed, U8, whole.size * bits // 8))
    return b.op(
        f"{DOMAIN}::MatMulNBits", *inputs, K=length or width, N=columns, bits=bits, block_size=size
    )


@dataclass(frozen=True)
class _Rows:
    """A matrix in blocks of `size` along its rows, in the types that MatMulNBits takes."""

    numbers: Value
    scale: Value
    zero_point: Value | None
    size: int


def _in_rows(weights: Node) -> _Rows | None:
    numbers, scale, zero_point = weights.inputs[0], weights.inputs[1], weights.input(2)
    known = [value.constant for value in weights.operands]
    if numbers is None or scale is None or None in known or numbers.rank != 2:
        return None
    if numbers.element not in (U2, U4, U8) or scale.element is not F32:
        return None
    rows, width = numbers.dims
    size, axis = weights.attributes["block_size"], weights.attributes["axis"] % 2
    if not size and axis == 0 and scale.shape == (rows,):
        size, axis = width, 1  # A row is one block.
    assert isinstance(rows, int) and isinstance(width, int)
    if axis != 1 or size < SMALLEST_BLOCK or size & (size - 1) or width % size:
        return None
    fits = scale.shape in ((rows, width // size), (rows,))
    return _Rows(numbers, scale, zero_point, size) if fits else None
