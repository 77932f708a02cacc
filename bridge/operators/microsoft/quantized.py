"""Quantised operators of onnxruntime's own domain, com.microsoft, for IR.

Each operator is a standard operator between DequantizeLinear and QuantizeLinear (onnxruntime's
ContribOperators). Attributes have their values from the file.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bridge.neutral.inference.indexes import indexes
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import F32, I32, U2, U4, U8, Element
from bridge.operators import (
    Builder,
    Node,
    Refused,
    Result,
    Value,
    attributes_beside,
    legalizes,
    ranks,
    required,
)
from bridge.operators.activation.softmax import over_all_from
from bridge.operators.elementwise.bits import NORMAL_FLOATS

BY_BITS = {2: U2, 4: U4, 8: U8}


def _opened(b: Builder, values: Sequence[Value | None]) -> Value:
    """The dequantised tensor of a tensor, its scale and its zero point."""
    return b.op("DequantizeLinear", *values)


def _closed(b: Builder, y: Value, node: Node, at: int, adds_first: bool = False) -> Value:
    """The quantised tensor, with the scale in input `at` and the zero point behind it. Without one
    it has the type of the first input. If the operator `adds_first`, it rounds the sum with the
    zero point: ties go to even results, as with an even zero point in QuantizeLinear."""
    scale, zero, element = node.operand(at), node.input(at + 1), node.operand(0).element
    if zero is None:
        zero = None if element is U8 else b.constant(0, element)
    elif adds_first and ((known := known_of(zero).ints) is None or any(i % 2 for i in known)):
        y = y / b.scalar(scale) + b.cast(b.scalar(zero), F32)
        scale, zero = b.constant(1.0), b.constant(0, element)
    return b.op("QuantizeLinear", y, scale, zero)


def _quantized(
    name: str, adds_first: bool = False
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Registers an operator with one quantised input. Its inputs are X, the scale and zero point of
    X, and the scale and zero point of Y."""

    def register(function: Callable[[Builder, Node, Value], Value]) -> Callable[..., Value]:
        @legalizes(f"com.microsoft::{name}", target="ir")
        def rule(b: Builder, node: Node) -> Result:
            result = function(b, node, _opened(b, node.inputs[:3]))
            return _closed(b, result, node, 3, adds_first)

        rule.__doc__ = function.__doc__
        return function

    return register


@legalizes("com.microsoft::QLinearAdd", "com.microsoft::QLinearMul", target="ir")
def qlinear_arithmetic(b: Builder, node: Node) -> Result:
    """`com.microsoft::QLinearAdd` and QLinearMul (1): the operator between DequantizeLinear and
    QuantizeLinear, with other ties."""
    sides = _opened(b, node.inputs[:3]), _opened(b, node.inputs[3:6])
    return _closed(b, b.op(node.op[-3:], *sides), node, 6, adds_first=True)


@legalizes("com.microsoft::QLinearWhere", target="ir")
def qlinear_where(b: Builder, node: Node) -> Result:
    """`com.microsoft::QLinearWhere` (1): Where between DequantizeLinear and QuantizeLinear."""
    sides = _opened(b, node.inputs[1:4]), _opened(b, node.inputs[4:7])
    return b.op("QuantizeLinear", b.where(required(node, 0)[0], *sides), *node.inputs[7:9])


@legalizes("com.microsoft::QLinearConv", target="ir")
def qlinear_conv(b: Builder, node: Node) -> Result:
    """`com.microsoft::QLinearConv` (1): ONNX's QLinearConv, optionally with the channels last."""
    attributes = attributes_beside(node, "channels_last")
    if not node.attributes.get("channels_last", 0):
        return b.op("QLinearConv", *node.inputs, **attributes)
    (rank,) = ranks(node, 0)
    first = b.channels_first(node.operand(0), rank)
    return b.channels_last(b.op("QLinearConv", first, *node.inputs[1:], **attributes), rank)


@legalizes("com.microsoft::NhwcMaxPool", target="ir")
def nhwc_max_pool(b: Builder, node: Node) -> Result:
    """`com.microsoft::NhwcMaxPool` (1): MaxPool with the channels last."""
    (rank,) = ranks(node, 0)
    attributes = attributes_beside(node, "ceil_mode")
    attributes["rounding_type"] = "ceil_torch" if node.attributes.get("ceil_mode", 0) else "floor"
    y = b.op("MaxPool", b.channels_first(node.operand(0), rank), **attributes)
    return b.channels_last(y, rank)


@legalizes("com.microsoft::QLinearConcat", target="ir")
def qlinear_concat(b: Builder, node: Node) -> Result:
    """`com.microsoft::QLinearConcat` (1): each part has its own scale and zero point."""
    parts = [_opened(b, node.inputs[i : i + 3]) for i in range(2, len(node.inputs), 3)]
    joined = b.op("Concat", *parts, axis=node.attributes["axis"])
    return b.op("QuantizeLinear", joined, *node.inputs[:2])


@_quantized("QLinearSigmoid")
def qlinear_sigmoid(b: Builder, node: Node, x: Value) -> Value:
    """com.microsoft::QLinearSigmoid (1)."""
    return b.op("Sigmoid", x)


@_quantized("QLinearLeakyRelu")
def qlinear_leaky_relu(b: Builder, node: Node, x: Value) -> Value:
    """com.microsoft::QLinearLeakyRelu (1)."""
    return b.op("LeakyRelu", x, alpha=node.attributes.get("alpha", 0.01))


@_quantized("QLinearSoftmax")
def qlinear_softmax(b: Builder, node: Node, x: Value) -> Value:
    """`com.microsoft::QLinearSoftmax` (1): `opset` selects the version of ONNX's Softmax."""
    axis, is_new = node.attributes.get("axis", -1), node.attributes["opset"] >= 13
    return b.op("Softmax", x, axis=axis) if is_new else over_all_from(b, "Softmax", x, axis)


@_quantized("QLinearReduceMean")
def qlinear_reduce_mean(b: Builder, node: Node, x: Value) -> Value:
    """com.microsoft::QLinearReduceMean (1)."""
    axes = node.attributes.get("axes")
    keep = bool(node.attributes.get("keepdims", 1))
    return b.op("ReduceMean", x, b.constant(list(axes)) if axes else None, keepdims=keep)


@_quantized("QLinearGlobalAveragePool")
def qlinear_global_average_pool(b: Builder, node: Node, x: Value) -> Value:
    """`com.microsoft::QLinearGlobalAveragePool` (1), optionally with the channels last."""
    rank = ranks(node, 0)[0]
    first = 1 if node.attributes.get("channels_last", 0) else 2
    return b.op("ReduceMean", x, list(range(first, first + rank - 2)), keepdims=True)


@_quantized("QLinearAveragePool", adds_first=True)
def qlinear_average_pool(b: Builder, node: Node, x: Value) -> Value:
    """`com.microsoft::QLinearAveragePool` (1), perhaps with the channels last. If padding counts,
    all of the last window counts, also what lies behind the padding."""
    attributes = attributes_beside(node, "channels_last")
    for name in ("ceil_mode", "count_include_pad"):
        attributes[name] = bool(node.attributes.get(name, 0))
    rank = ranks(node, 0)[0] if node.attributes.get("channels_last", 0) else None
    x = x if rank is None else b.channels_first(x, rank)
    given = node.attributes.get("auto_pad", "NOTSET") == "NOTSET"
    if given and attributes["ceil_mode"] and attributes["count_include_pad"]:
        kernel = attributes["kernel_shape"]
        before, behind = np.reshape(node.attributes.get("pads", [0, 0] * len(kernel)), (2, -1))
        steps = attributes.get("strides", [1] * len(kernel))
        # No window starts behind the input and the padding in front of it.
        after = [min(k - 1, p + s - 1) for k, p, s in zip(kernel, behind, steps, strict=True)]
        x = b.op("Pad", x, [0, 0, *before, 0, 0, *after], mode="constant")
        attributes |= {"ceil_mode": False, "pads": (0, 0) * len(kernel)}
    y = b.op("AveragePool", x, **attributes)
    return y if rank is None else b.channels_last(y, rank)


@legalizes("com.microsoft::QGemm", target="ir")
def qgemm(b: Builder, node: Node) -> Result:
    """`com.microsoft::QGemm` (1): the bias has 32-bit integers, in units of the product of both
    scales."""
    (a_scale, b_scale), bias = required(node, 1, 4), node.input(6)
    flags = {name: bool(node.attributes.get(name, 0)) for name in ("transA", "transB")}
    right = b.op("DequantizeLinear", *node.inputs[3:6], axis=0 if flags["transB"] else 1)
    alpha = node.attributes.get("alpha", 1.0)
    y = b.op("Gemm", _opened(b, node.inputs[:3]), right, None, alpha=alpha, **flags)
    if bias is not None:
        unit = a_scale * b_scale * alpha
        y += b.cast(bias, F32) * unit
    scale, zero = node.input(7), node.input(8)
    if (scale is None) is not (zero is None):
        raise Refused("its result needs both a scale and a zero point, or neither")
    return y if scale is None else b.op("QuantizeLinear", y, scale, zero)


@legalizes("com.microsoft::MatMulIntegerToFloat", target="ir")
def matmul_integer_to_float(b: Builder, node: Node) -> Result:
    """`com.microsoft::MatMulIntegerToFloat` (1): the product of dequantised matrices, and a
    bias."""
    left, right, left_scale, right_scale = node.inputs[:4]
    x = b.op("DequantizeLinear", left, left_scale, node.input(4), axis=-2)
    y = b.op("DequantizeLinear", right, right_scale, node.input(5), axis=-1)
    return b.plus(b.op("MatMul", x, y), node.input(6))


@legalizes("com.microsoft::DynamicQuantizeMatMul", target="ir")
def dynamic_quantize_matmul(b: Builder, node: Node) -> Result:
    """`com.microsoft::DynamicQuantizeMatMul` (1): quantises A to u8 and back, then adds a bias to
    the product."""
    x = _opened(b, b.ops("DynamicQuantizeLinear", 3, node.inputs[0]))
    y = b.op("DequantizeLinear", *node.inputs[1:3], node.input(3), axis=-1)
    return b.plus(b.op("MatMul", x, y), node.input(4))


@legalizes("com.microsoft::MatMulNBits", target="ir")
def matmul_n_bits(b: Builder, node: Node) -> Result:
    """`com.microsoft::MatMulNBits` (1): a product with the transpose of a matrix [N, K] of few bits
    in blocks along K. Both formats pack its bytes in the same way. The groups of `g_idx` become
    blocks."""
    data, packed, scales = required(node, 0, 1, 2)
    zeros = node.input(3)
    attributes: dict[str, Any] = node.attributes
    bits, size = attributes.get("bits", 4), attributes["block_size"]
    element, weights = BY_BITS.get(bits), packed.constant
    order = node.input(4)
    groups = None if order is None else known_of(order).ints
    if element is None or weights is None or (order is not None and groups is None):
        raise Refused("it needs constant weights of 2, 4 or 8 bits, and a constant g_idx")
    columns, length = attributes["N"], attributes["K"]
    blocks = -(-length // size)
    integers = b.as_bits(packed, element, columns, blocks * size)
    moved = _by_group(groups, size, blocks * size)
    if moved is not None:
        # The columns of a group stand side by side, as those of a block, and the data's likewise.
        data = b.op("Gather", data, b.constant(moved[:length]), -1)
        some = integers.known_constant.array()[:, moved]
        integers = b.tensor(Tensor.of(np.ascontiguousarray(some)), list(packed.names))
    b.room(columns, blocks)
    if zeros is None:
        values = np.full((columns, blocks), 1 << bits - 1)
    else:
        values = unpacked_zeros(zeros, bits, columns, blocks)
    grid = b.reshape(b.cast(scales, F32), columns, blocks)
    if np.array_equal(values, np.round(values)):
        names = [] if zeros is None else list(zeros.names)
        zero_point = b.tensor(Tensor.of(values.astype(element.dtype)), names)
        right = b.op("DequantizeLinear", integers, grid, zero_point, axis=1, block_size=size)
    else:
        right = _dequantized(b, integers, grid, values)
    if blocks * size != length:
        right = b.cut(right, 1, 0, length)
    y = b.op("MatMul", b.cast(data, F32), right, transpose_b=True)
    bias = node.input(5)
    return b.cast(b.plus(y, None if bias is None else b.cast(bias, F32)), data.element)


def _by_group(given: Sequence[int] | None, size: int, columns: int) -> np.ndarray | None:
    """The columns in the order of their groups; None if this is their own order. Columns behind the
    given ones fill up the last block."""
    if given is None:
        return None
    places = np.arange(columns)
    groups = np.array([*given[:columns], *(places // size)[len(given) :]])
    order = np.argsort(groups, kind="stable")
    if not np.array_equal(groups[order], places // size):
        raise Refused("the groups of its g_idx do not have its block_size")
    return None if np.array_equal(order, places) else order


def _dequantized(b: Builder, integers: Value, scales: Value, zeros: np.ndarray) -> Value:
    """The dequantised values of integers [columns, length] in blocks. The zero points may lie
    between whole numbers, as HQQ finds them."""
    columns, blocks = zeros.shape
    shifts = b.constant(zeros.reshape(columns, blocks, 1).astype(np.float32))
    parts = b.cast(b.reshape(integers, columns, blocks, -1), F32)
    return b.reshape((parts - shifts) * b.reshape(scales, columns, blocks, 1), columns, -1)


_FP4 = (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
"""The levels of bitsandbytes' 4-bit floats, without their sign."""


@legalizes("com.microsoft::MatMulBnb4", target="ir")
def matmul_bnb4(b: Builder, node: Node) -> Result:
    """`com.microsoft::MatMulBnb4` (1): a product with the transpose of a matrix [N, K]. Its
    elements are indices in a table of 16 levels, in blocks over the whole matrix. The higher 4 bits
    of a byte come first."""
    data, packed, scales = required(node, 0, 1, 2)
    weights, attributes = packed.constant, node.attributes
    if weights is None or weights.element is not U8 or not attributes.get("transB", 1):
        raise Refused("its weights must be constant, with transB = 1")
    columns, length, size = attributes["N"], attributes["K"], attributes["block_size"]
    pairs = b.cast(b.as_bits(packed, U4, weights.size, 2), I32)
    places = b.reshape(b.take(pairs, 1, 1, 0), -1)
    levels = NORMAL_FLOATS if attributes["quant_type"] else (*_FP4, *(-level for level in _FP4))
    whole = b.op("Gather", b.constant(list(levels), F32), places, 0)
    blocks = -(-columns * length // size)
    rows = b.reshape(scales, -1, 1)
    if missing := blocks * size - 2 * weights.size:
        whole = b.op("Pad", whole, b.constant([0, missing]))
    scaled = b.reshape(whole, blocks, size) * b.cast(rows, F32)
    right = b.reshape(scaled, -1)[: columns * length]
    y = b.op("MatMul", b.cast(data, F32), b.reshape(right, columns, length), transpose_b=True)
    return b.cast(y, data.element)


@legalizes("com.microsoft::GatherBlockQuantized", target="ir")
def gather_block_quantized(b: Builder, node: Node) -> Result:
    """`com.microsoft::GatherBlockQuantized` (1): slices of a tensor of integers in blocks. A byte
    holds elements of 2, 4 or 8 bits along the last axis, with the first element in the lowest
    bits."""
    data, indices, scales = required(node, 0, 1, 2)
    zeros, attributes = node.input(3), node.attributes
    weights, size = data.constant, attributes.get("block_size", 128)
    if weights is None or not weights.element.is_integer:
        raise Refused("its data must be a constant of integers")
    axis = attributes.get("quantize_axis", 1) % len(weights.shape)
    bits = attributes.get("bits", 4)
    if weights.element is U8:
        element = BY_BITS.get(bits)
        if element is None:
            raise Refused(f"its bits must be 2, 4 or 8, not {bits}")
        *outer, last = weights.shape
        grid = [*outer, last * 8 // bits]
        data = b.as_bits(data, element, *grid)
        if zeros is None:
            grid[axis] = -(-grid[axis] // size)
            zeros = b.filled(1 << bits - 1, grid, element)
        elif element is not U8:
            zeros = _cut_to(b, zeros, element, scales)
    values = b.op("DequantizeLinear", data, scales, zeros, axis=axis, block_size=size)
    return b.op("Gather", values, indices, attributes.get("gather_axis", 0))


indexes("com.microsoft::GatherBlockQuantized", {1: "0[0]"})


def _cut_to(b: Builder, zeros: Value, element: Element, scales: Value) -> Value:
    """Zero points of few bits packed in bytes, cut to the size of the scales. The last byte of a
    row may hold more zero points than there are scales."""
    if zeros.constant is None:
        raise Refused("its zero points must be constant")
    *outer, last = zeros.constant.shape
    wide = b.as_bits(zeros, element, *outer, last * 8 // element.bits)
    tensor, count = wide.known_constant, scales.dims[-1]
    if not isinstance(count, int) or count == tensor.shape[-1]:
        return wide
    return b.tensor(Tensor.of(tensor.array()[..., :count]), list(zeros.names))


def unpacked_zeros(zeros: Value, bits: int, columns: int, blocks: int) -> np.ndarray:
    """Zero points [columns, blocks]. Packed zero points fill whole bytes in each column."""
    known = known_of(zeros).array
    if known is None:
        raise Refused("its zero points must be constant")
    if zeros.element is not U8:
        return known.astype(np.float32).reshape(columns, blocks)
    packed = np.ascontiguousarray(known).data
    wide = Tensor(BY_BITS[bits], (columns, known.size * 8 // bits // columns), packed)
    return wide.array()[:, :blocks].astype(np.uint8)
