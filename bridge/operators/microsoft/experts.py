"""Mixtures of experts of onnxruntime's own domain, com.microsoft, for IR (onnxruntime's
ContribOperators and its `contrib_ops/cpu/moe`). Rows of tokens stand behind one another by their
expert, and IR's GroupedMatMul reads the weights of experts that have rows, no others."""

from typing import Any

import numpy as np

from bridge.neutral.tensor import Tensor
from bridge.neutral.types import I32
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required
from bridge.operators.microsoft.quantized import BY_BITS, unpacked_zeros

_SIMPLE = {"relu": "Relu", "silu": "Swish", "identity": "Identity"}


@legalizes("com.microsoft::MoE", target="ir")
def mixture_of_experts(b: Builder, node: Node) -> Result:
    """`com.microsoft::MoE` (1): each token goes through its best experts, two or three products of
    matrices, and gets the sum of their results by the softmax of their scores."""
    return _mixture(b, node, [(node.input(i), node.input(i + 1)) for i in (2, 4, 6)], None)


@legalizes("com.microsoft::QMoE", target="ir")
def quantized_mixture_of_experts(b: Builder, node: Node) -> Result:
    """`com.microsoft::QMoE` (1): MoE with weights of few bits in blocks along the last axis. The
    softmax is over the scores of the chosen experts alone."""
    attributes: dict[str, Any] = node.attributes
    if attributes.get("quant_type", "int") != "int":
        raise Refused(f"its quant_type = {attributes['quant_type']} is not supported")
    if attributes.get("weights_prepacked", -1) == 1:
        raise Refused("its weights are packed for one kind of processor")
    layers = [(_dequantized(b, node, i), node.input(3 * i + 1)) for i in (1, 2, 3)]
    return _mixture(b, node, layers, node.input(14))


def _mixture(
    b: Builder,
    node: Node,
    layers: list[tuple[Value | None, Value | None]],
    mixing: Value | None,
) -> Result:
    """The mixture, with the weights and the biases of each layer. `mixing` has the shares of the
    experts; by default, they are the softmax of the scores."""
    attributes: dict[str, Any] = node.attributes
    x, scores = required(node, 0, 1)
    best = attributes.get("k", 1)
    count, size = scores.dims[-1], x.dims[-1]
    if not isinstance(count, int) or not isinstance(size, int):
        raise Refused("how many and how large its experts are is open; give `input_shapes`")
    _, chosen = b.ops("TopK", 2, scores, b.constant([best]), axis=1)
    shares = b.op("Softmax", scores, axis=-1) if mixing is None else mixing
    shares = b.op("GatherElements", shares, chosen, axis=1)
    alone = mixing is None and node.op.endswith("QMoE")
    if attributes.get("normalize_routing_weights", 0) or alone:
        shares /= b.op("ReduceSum", shares, [1], keepdims=True)
    experts = b.reshape(chosen, -1)
    # The order of the rows by expert, and the place of each token among them.
    expert_of_row, order = b.ops("TopK", 2, experts, b.sizes(experts, 0), axis=0, largest=False)
    _, places = b.ops("TopK", 2, order, b.sizes(experts, 0), axis=0, largest=False)
    behind = b.unsqueeze(expert_of_row, 0) <= b.constant(np.arange(count).reshape(-1, 1))
    ends = b.op("ReduceSum", b.cast(behind, I32), [1], keepdims=False)

    def layer(rows: Value, index: int) -> Value | None:
        weights, bias = layers[index]
        if weights is None:
            return None
        y = b.op("GroupedMatMul", rows, weights, ends)
        return b.plus(y, None if bias is None else b.op("Gather", bias, expert_of_row, 0))

    rows = b.op("Gather", b.reshape(x, -1, size), order / best, 0)
    first, third = layer(rows, 0), layer(rows, 2)
    assert first is not None
    y = layer(_activated(b, attributes, first, third), 1)
    assert y is not None
    y = b.reshape(b.op("Gather", y, places, 0), -1, best, size)
    y = b.op("ReduceSum", y * b.unsqueeze(shares, 2), [1], keepdims=False)
    return b.reshape(y, b.op("Shape", x))


def _activated(b: Builder, attributes: dict[str, Any], x: Value, up: Value | None) -> Value:
    """The activation of the first layer. A third layer, or half of the first one, multiplies it."""
    kind, fusion = attributes.get("activation_type", "relu"), attributes.get("swiglu_fusion", 0)
    limit, clamped = (attributes.get(f"swiglu_limit{x}") for x in ("", "_after_activation"))
    alpha, beta = attributes.get("activation_alpha", 1.0), attributes.get("activation_beta", 0.0)
    if kind == "gelu":
        x = b.op("Gelu", x, approximate="tanh")
    elif kind in _SIMPLE:
        x = b.op(_SIMPLE[kind], x)
    elif kind != "swiglu" or clamped:
        raise Refused(f"its activation {kind} is not supported")
    else:
        if fusion == 1:
            x, up = (b.reshape(half, 0, -1) for half in b.split(b.reshape(x, 0, -1, 2), 2, 1, 1))
        elif fusion == 2:
            x, up = b.ops("Split", 2, x, axis=1)
        if up is None:
            raise Refused("it has no linear part of its SwiGLU")
        if limit is not None and np.isfinite(limit):
            x, up = b.min(x, b.like(limit, x)), b.op("Clip", up, -limit, limit)
        x *= b.op("Sigmoid", x * alpha)
        up += beta
    return x if up is None else x * up


def _dequantized(b: Builder, node: Node, layer: int) -> Value | None:
    """The weights [experts, outputs, inputs] of a layer."""
    packed, scales, zeros = (node.input(i) for i in (3 * layer - 1, 3 * layer, 10 + layer))
    attributes: dict[str, Any] = node.attributes
    bits = attributes.get(f"fc{layer}_expert_weight_bits", attributes.get("expert_weight_bits", 4))
    if packed is None:
        return None
    element, weights = BY_BITS.get(bits), packed.constant
    if element is None or weights is None or scales is None or scales.shape is None:
        raise Refused("it needs constant weights of 2, 4 or 8 bits and scales")
    experts, outputs, width = weights.shape
    length = width * 8 // bits
    blocks = scales.dims[2] if scales.rank == 3 else 1
    if not isinstance(blocks, int) or length % blocks:
        raise Refused("the number of its blocks is not known; give `input_shapes`")
    grid = experts, outputs, blocks
    points = b.filled(1 << bits - 1, grid, element)
    if zeros is not None:
        # Zero points fill whole bytes for each row, or, without blocks, for each expert.
        rows = (experts * outputs, blocks) if scales.rank == 3 else (experts, outputs)
        values = unpacked_zeros(zeros, bits, *rows).reshape(grid)
        points = b.tensor(Tensor.of(values.astype(element.dtype)), list(zeros.names))
    integers = b.as_bits(packed, element, experts, outputs, length)
    scales = b.reshape(scales, *grid)
    return b.op("DequantizeLinear", integers, scales, points, axis=2, block_size=length // blocks)
