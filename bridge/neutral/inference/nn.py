"""Convolution, pooling and normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.neutral.builder import integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import first, infers, same
from bridge.neutral.types import (
    ANY,
    BOOL,
    F32,
    I32,
    I64,
    UNKNOWN,
    Dim,
    Shape,
    TensorType,
    Type,
    high,
    interval,
    low,
)

infers(
    "GRN", "GroupNormalization", "InstanceNormalization", "LRN", "LpNormalization", "MVN",
    "MeanVarianceNormalization", "NormalizeL2", "RMSNormalization",
)(same)  # fmt: skip


def window_size(
    dim: Dim, kernel: int, stride: int, dilation: int, pads: tuple[int, int], rounding: str
) -> Dim:
    """Positions of a window along a dimension; `rounding` as in AvgPool."""
    if not isinstance(dim, int):
        if stride == 1 and sum(pads) == dilation * (kernel - 1):
            return dim
        # The larger the dimension, the more positions there are.
        least, most = (
            None if end is None else window_size(end, kernel, stride, dilation, pads, rounding)
            for end in (low(dim), high(dim))
        )
        return interval(low(least or 0), None if most is None else high(most))
    room = dim + sum(pads) - (dilation * (kernel - 1) + 1)
    if rounding == "floor":
        return max(room // stride + 1, 0)
    count = -(-room // stride) + 1
    if rounding == "ceil_torch" and (count - 1) * stride >= dim + pads[0]:
        count -= 1
    return max(count, 0)


def windows(
    attributes: dict[str, Any], spatial: Sequence[Dim], kernel: Sequence[Dim]
) -> tuple[Dim, ...]:
    """Spatial dimensions after a convolution or pooling with the usual attributes."""
    rank = len(spatial)
    strides = attributes.get("strides") or (1,) * rank
    dilations = attributes.get("dilations") or (1,) * rank
    pads = attributes.get("pads") or (0,) * (2 * rank)
    auto_pad = attributes.get("auto_pad", "NOTSET")
    result: list[Dim] = []
    for i, dim in enumerate(spatial):
        if auto_pad.startswith("SAME"):
            unknown = dim if strides[i] == 1 else ANY
            result.append(-(-dim // strides[i]) if isinstance(dim, int) else unknown)
            continue
        k = kernel[i]
        ends = (0, 0) if auto_pad == "VALID" else (pads[i], pads[i + rank])
        rounding = attributes.get("rounding_type") or (
            "ceil_torch" if attributes.get("ceil_mode") else "floor"
        )
        if isinstance(k, int):
            result.append(window_size(dim, k, strides[i], dilations[i], ends, rounding))
        else:
            result.append(ANY)
    return tuple(result)


def _convolved(node: Node, data: Shape, filters: Shape, channels: int, leading: int) -> Shape:
    """The shape after a convolution whose filters have `leading` dimensions before the spatial
    ones, of which the first `channels` make the output's channels."""
    kernel: Sequence[Dim]
    if filters is not None:
        kernel = filters[leading:]
        out: Dim = 1
        for dim in filters[:channels]:
            out = out * dim if isinstance(out, int) and isinstance(dim, int) else ANY
    elif data is not None:
        kernel, out = node.attributes.get("kernel_shape") or (ANY,) * (len(data) - 2), ANY
    else:
        return None
    batch, spatial = (data[0], data[2:]) if data is not None else (ANY, (ANY,) * len(kernel))
    if len(spatial) != len(kernel):
        return None
    return (batch, out, *windows(node.attributes, spatial, kernel))


@infers("Conv", "BinaryConvolution", "DeformConv")
def conv(node: Node) -> list[Type]:
    data = first(node)
    return [TensorType(data.element, _convolved(node, data.shape, first(node, 1).shape, 1, 2))]


@infers("ConvInteger")
def conv_integer(node: Node) -> list[Type]:
    return [TensorType(I32, _convolved(node, first(node).shape, first(node, 1).shape, 1, 2))]


@infers("QLinearConv")
def qlinear_conv(node: Node) -> list[Type]:
    shape = _convolved(node, first(node).shape, first(node, 3).shape, 1, 2)
    return [TensorType(first(node, 7).element, shape)]


@infers("DeformableConvolution")
def deformable_convolution(node: Node) -> list[Type]:
    data = first(node)
    return [TensorType(data.element, _convolved(node, data.shape, first(node, 2).shape, 1, 2))]


@infers("GroupConvolution")
def group_convolution(node: Node) -> list[Type]:
    data = first(node)
    return [TensorType(data.element, _convolved(node, data.shape, first(node, 1).shape, 2, 3))]


def _backprop(
    node: Node,
    channels: Dim,
    kernel: Sequence[Dim] | None,
    output: Sequence[Dim] | None,
    same: bool,
) -> list[Type]:
    """A transposed convolution; `same`: auto_pad SAME makes the size stride times the input's."""
    data = first(node)
    if kernel is None and data.shape is None:
        return [TensorType(data.element)]
    rank = len(kernel) if kernel is not None else len(data.shape or ()) - 2
    attributes = node.attributes
    auto_pad = attributes["auto_pad"]
    strides = attributes.get("strides") or (1,) * rank
    dilations = attributes.get("dilations") or (1,) * rank
    extra = attributes.get("output_padding") or (0,) * rank
    pads = (attributes.get("pads") if auto_pad == "NOTSET" else None) or (0,) * (2 * rank)
    batch = data.shape[0] if data.shape else ANY
    spatial: list[Dim] = []
    for i in range(rank):
        dim = data.shape[i + 2] if data.shape else ANY
        k = kernel[i] if kernel is not None else ANY
        if output is not None:
            spatial.append(output[i])
        elif not isinstance(dim, int):
            spatial.append(ANY)
        elif same and auto_pad.startswith("SAME"):
            spatial.append(dim * strides[i])
        elif isinstance(k, int):
            full = (dim - 1) * strides[i] + (k - 1) * dilations[i] + 1
            spatial.append(full + extra[i] - pads[i] - pads[i + rank])
        else:
            spatial.append(ANY)
    return [TensorType(data.element, (batch, channels, *spatial))]


@infers("ConvTranspose")
def conv_transpose(node: Node) -> list[Type]:
    filters = first(node, 1).shape
    kernel = filters[2:] if filters else node.attributes.get("kernel_shape")
    out = filters[1] if filters else ANY
    output = node.attributes.get("output_shape")
    if output and kernel is not None:
        output = output[-len(kernel) :]
    group = node.attributes["group"]
    return _backprop(
        node, out * group if isinstance(out, int) else ANY, kernel, output or None, True
    )


@infers("ConvolutionBackpropData")
def convolution_backprop_data(node: Node) -> list[Type]:
    filters = first(node, 1).shape
    kernel = filters[2:] if filters else None
    return _backprop(node, filters[1] if filters else ANY, kernel, _output_shape(node), False)


@infers("GroupConvolutionBackpropData")
def group_convolution_backprop_data(node: Node) -> list[Type]:
    filters = first(node, 1).shape
    out: Dim = ANY
    if filters and isinstance(filters[0], int) and isinstance(filters[2], int):
        out = filters[0] * filters[2]
    return _backprop(node, out, filters[3:] if filters else None, _output_shape(node), False)


def _output_shape(node: Node) -> Sequence[Dim] | None:
    value = node.input(2)
    if value is None:
        return None
    if value.content is not None:
        return tuple(ANY if dim is None else dim for dim in value.content)
    return integers(value) or (ANY,) * 3


def _pooled(node: Node) -> TensorType:
    data = first(node)
    kernel = node.attributes["kernel_shape"]
    batch, channels = data.shape[:2] if data.shape else (ANY, ANY)
    spatial = data.shape[2:] if data.shape else (ANY,) * len(kernel)
    return TensorType(
        data.element, (batch, channels, *windows(node.attributes, spatial, kernel))
    )  # fmt: skip


@infers("AveragePool", "AvgPool", "LpPool")
def pool(node: Node) -> list[Type]:
    return [_pooled(node)]


@infers("MaxPool")
def max_pool(node: Node) -> list[Type]:
    pooled = _pooled(node)
    return [pooled, TensorType(node.attributes["index_element_type"], pooled.shape)]


@infers("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    return [TensorType(data.element, (*data.shape[:2], *(1,) * (len(data.shape) - 2)))]


@infers("AdaptiveAvgPool", "AdaptiveMaxPool")
def adaptive_pool(node: Node) -> list[Type]:
    data = first(node)
    shape: Shape = None
    if data.shape is not None:
        spatial = _sizes(node.input(1)) or (ANY,) * (len(data.shape) - 2)
        shape = (*data.shape[: -len(spatial)], *spatial) if spatial else data.shape
    indices = node.attributes.get("index_element_type", I64)
    return [TensorType(data.element, shape), TensorType(indices, shape)]


def _sizes(value: Value | None) -> tuple[Dim, ...] | None:
    content = None if value is None else value.content
    return None if content is None else tuple(ANY if dim is None else dim for dim in content)


@infers("MaxUnpool")
def max_unpool(node: Node) -> list[Type]:
    data = first(node)
    if node.input(2) is not None:
        known = _sizes(node.input(2))
        return [TensorType(data.element, known or (data.shape and (ANY,) * len(data.shape)))]
    if data.shape is None:
        return [data]
    kernel = node.attributes["kernel_shape"]
    strides = node.attributes.get("strides") or (1,) * len(kernel)
    pads = node.attributes.get("pads") or (0,) * (2 * len(kernel))
    spatial = [
        (dim - 1) * strides[i] + kernel[i] - pads[i] - pads[i + len(kernel)]
        if isinstance(dim, int)
        else ANY
        for i, dim in enumerate(data.shape[2:])
    ]
    return [TensorType(data.element, (*data.shape[:2], *spatial))]


@infers("BatchNormalization")
def batch_normalization(node: Node) -> list[Type]:
    mean = first(node, 3)
    return [first(node), mean, mean]


@infers("LayerNormalization")
def layer_normalization(node: Node) -> list[Type]:
    data = first(node)
    shape: Shape = None
    if data.shape is not None:
        axis = node.attributes["axis"] % max(len(data.shape), 1)
        shape = (*data.shape[:axis], *(1,) * (len(data.shape) - axis))
    statistics = TensorType(node.attributes["stash_type"] or F32, shape)
    return [data, statistics, statistics]


@infers("Dropout")
def dropout(node: Node) -> list[Type]:
    data = first(node)
    return [data, TensorType(BOOL, data.shape)]


@infers("CTCGreedyDecoder")
def ctc_greedy_decoder(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [TensorType(data.element, (ANY,) * 4)]
    return [TensorType(data.element, (data.shape[1], data.shape[0], 1, 1))]


@infers("CTCGreedyDecoderSeqLen")
def ctc_greedy_decoder_seq_len(node: Node) -> list[Type]:
    shape = first(node).shape or (ANY, ANY)
    return [
        TensorType(node.attributes["classes_index_type"], shape[:2]),
        TensorType(node.attributes["sequence_length_type"], shape[:1]),
    ]


@infers("CTCLoss")
def ctc_loss(node: Node) -> list[Type]:
    data = first(node)
    return [TensorType(data.element, data.shape[:1] if data.shape else UNKNOWN.shape)]
