"""Convolutions, also transposed and deformable ones.

In IR, the filters have an axis of groups, there is no bias, and all attributes are explicit. A
transposed convolution with an output shape distributes its padding differently in IR. ONNX's
SAME_UPPER is IR's same_lower, and any other ONNX mode is IR's same_upper (ConvTranspose's
specification, confirmed by experiment).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.neutral.inference import constraints as must, first, infers, require
from bridge.neutral.inference.dims import dim_product
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, F32, Dim, TensorType, Type, differ, is_static, size_of
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required
from bridge.operators.nn.shapes import convolved, full_attributes, window, window_faults


def spatial_rank(node: Node, filters: Value) -> int:
    """The number of spatial axes of a convolution; Refused if it is unknown."""
    if filters.rank is not None:
        return filters.rank - 2
    for name, per_axis in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 2)):
        if node.attributes.get(name):
            return len(node.attributes[name]) // per_axis
    raise Refused("the rank of its filters is not known; declare the shapes of the graph's inputs")


def split_groups(b: Builder, filters: Value, group: int, rank: int) -> Value:
    """Filters with their first axis split into (group, rest)."""
    return b.reshape(filters, group, -1, *(b.dim(filters, i) for i in range(1, rank)))


def join_groups(b: Builder, filters: Value) -> tuple[Value, int]:
    """Filters with their first two axes joined, and the number of groups."""
    groups, _, *rest = (
        b.dim(filters, i) for i in range(b.known(filters.rank, "its filters' rank"))
    )
    if not isinstance(groups, int):
        raise Refused("the number of groups is not known; give the filters a static shape")
    return b.reshape(filters, -1, *rest), groups


def add_bias(b: Builder, y: Value, bias: Value | None, rank: int) -> Value:
    """`y` plus a vector along its channels. `rank` is the number of spatial axes."""
    return y if bias is None else y + b.reshape(bias, 1, -1, *(1,) * rank)


@legalizes("Conv", target="ir")
def conv_to_ir(b: Builder, node: Node) -> Result:
    """Conv (1 to 25) as Convolution-1 or GroupConvolution-1, which have no bias. Groups are an axis
    of the filters."""
    data, filters = required(node, 0, 1)
    bias, rank = node.input(2), spatial_rank(node, filters)
    group = node.attributes["group"]
    attributes = full_attributes(node.attributes, rank)
    if group != 1:
        filters = split_groups(b, filters, group, rank + 2)
        y = b.op("GroupConvolution", data, filters, **attributes)
    elif bias is None and node.attributes == {**attributes, "group": 1, "kernel_shape": None}:
        return None
    else:
        y = b.op("Conv", data, filters, **attributes)
    return add_bias(b, y, bias, rank)


@legalizes("Conv", target="onnx")
def conv_to_onnx(b: Builder, node: Node) -> Result:
    """Conv (1 to 22). IR may have pads and auto_pad together. ONNX has no Conv of integers."""
    attributes = node.attributes
    if attributes["auto_pad"] != "NOTSET" and attributes.get("pads"):
        return b.op("Conv", *node.inputs, **{**attributes, "pads": None})
    element = node.operand(0).element
    if element is None or element.is_float:
        return None
    wide = [None if v is None else b.cast(v, F32) for v in node.inputs]
    return b.cast(b.op("Conv", *wide, **attributes), element)


@legalizes("GroupConvolution", target="onnx")
def group_convolution_to_onnx(b: Builder, node: Node) -> Result:
    """GroupConvolution-1 as Conv, with the axis of groups joined to the axis of output channels."""
    data, filters = required(node, 0, 1)
    joined, group = join_groups(b, filters)
    attributes = full_attributes(node.attributes, spatial_rank(node, joined))
    return b.op("Conv", data, joined, **attributes, group=group)


@legalizes("ConvTranspose", target="ir")
def conv_transpose_to_ir(b: Builder, node: Node) -> Result:
    """ConvTranspose (1 to 25) as (Group)ConvolutionBackpropData-1, where SAME means another
    padding."""
    data, filters = required(node, 0, 1)
    rank = spatial_rank(node, filters)
    attributes = full_attributes(node.attributes, rank)
    extra = list(node.attributes.get("output_padding") or (0,) * rank)
    auto_pad = attributes["auto_pad"]
    output = None
    if node.attributes.get("output_shape"):
        output = b.constant(list(node.attributes["output_shape"][-rank:]))
        attributes["auto_pad"] = "SAME_LOWER" if auto_pad == "SAME_UPPER" else "SAME_UPPER"
        attributes["pads"] = (0,) * (2 * rank)
    elif auto_pad != "NOTSET":
        attributes["auto_pad"] = "NOTSET"
        if auto_pad != "VALID":
            attributes["pads"] = _same_pads(node, filters, attributes, extra, auto_pad)
    group = node.attributes["group"]
    attributes["output_padding"] = tuple(extra)
    if group == 1:
        y = b.op("ConvolutionBackpropData", data, filters, output, **attributes)
    else:
        filters = split_groups(b, filters, group, rank + 2)
        y = b.op("GroupConvolutionBackpropData", data, filters, output, **attributes)
    return add_bias(b, y, node.input(2), rank)


def _same_pads(
    node: Node, filters: Value, attributes: dict[str, Any], extra: list[int], auto_pad: str
) -> tuple[int, ...]:
    """The pads for an output of stride times the input of a transposed convolution. If pads would
    be negative, `extra` grows instead."""
    rank = len(extra)
    kernel = filters.shape[2:] if filters.shape else node.attributes.get("kernel_shape")
    if not is_static(kernel):
        raise Refused(f"auto_pad {auto_pad} needs the size of the kernel; give kernel_shape")
    totals = []
    for i in range(rank):
        reach = (kernel[i] - 1) * attributes["dilations"][i] + 1
        total = extra[i] + reach - attributes["strides"][i]
        extra[i] += max(-total, 0)
        totals.append(max(total, 0))
    return _at_both_ends(totals, auto_pad)


def _at_both_ends(totals: list[int], auto_pad: str) -> tuple[int, ...]:
    """Pads at both ends with the given total along each axis. With SAME_UPPER, the end has the
    larger half."""
    begins = [total // 2 if auto_pad == "SAME_UPPER" else total - total // 2 for total in totals]
    return (*begins, *(total - begin for total, begin in zip(totals, begins, strict=True)))


@legalizes("ConvolutionBackpropData", "GroupConvolutionBackpropData", target="onnx")
def convolution_backprop_data_to_onnx(b: Builder, node: Node) -> Result:
    """ConvolutionBackpropData-1, GroupConvolutionBackpropData-1 as ConvTranspose. The result is
    padded to a computed output shape."""
    data, filters = required(node, 0, 1)
    output, group = node.input(2), 1
    if node.op == "GroupConvolutionBackpropData":
        filters, group = join_groups(b, filters)
    rank = spatial_rank(node, filters)
    attributes = full_attributes(node.attributes, rank)
    extra = tuple(node.attributes.get("output_padding") or (0,) * rank)
    auto_pad = attributes.pop("auto_pad")
    attributes |= {"group": group, "output_padding": extra if any(extra) else None}
    if output is None:
        if any(e >= stride for e, stride in zip(extra, attributes["strides"], strict=True)):
            return _longer(b, data, filters, extra, attributes)
        return b.op("ConvTranspose", data, filters, **attributes)
    known, same = known_of(output).ints, auto_pad.startswith("SAME")
    if same and known is not None and not _fills(data, filters, attributes, known):
        attributes["auto_pad"] = "SAME_UPPER" if auto_pad == "SAME_LOWER" else "NOTSET"
        attributes |= {"output_shape": known, "pads": None}
        return b.op("ConvTranspose", data, filters, **attributes)
    begins = attributes.pop("pads")[:rank]
    if not same:
        attributes["output_padding"] = None  # The output shape already determines the size.
    y = b.op("ConvTranspose", data, filters, **attributes)
    excess = b.sizes(y, *range(2, rank + 2)) - output
    begin = _share(b, excess, auto_pad) if same else b.constant(list(begins))
    none = b.constant([0, 0])
    pads = b.op("Concat", none, begin, none, excess - begin, axis=0)
    return b.op("Pad", y, -pads, mode="constant")


def _share(b: Builder, excess: Value, auto_pad: str) -> Value:
    """What SAME cuts off in front, of what is too much."""
    cut = b.max(excess, [0])
    half = cut / [2]
    return half if auto_pad == "SAME_LOWER" else cut - half


def _fills(data: Value, filters: Value, attributes: dict[str, Any], output: Sequence[int]) -> bool:
    """Whether zeros fill a part of an output shape that no filter reaches, which ONNX's lacks."""
    window = attributes["strides"], attributes["dilations"], output
    steps = zip((data.shape or ())[2:], (filters.shape or ())[2:], *window, strict=False)
    return any(
        isinstance(size, int)
        and isinstance(length, int)
        and (size - 1) * stride + (length - 1) * dilation + 1 < wanted
        for size, length, stride, dilation, wanted in steps
    )


def _longer(
    b: Builder, data: Value, filters: Value, extra: tuple[int, ...], attributes: dict[str, Any]
) -> Value:
    """A transposed convolution with `extra` more elements at the ends, because ONNX requires less
    than a stride. Uncropped padding and then zeros fill these elements."""
    rank = len(extra)
    begins, ends = attributes["pads"][:rank], attributes["pads"][rank:]
    kept = (max(end - e, 0) for end, e in zip(ends, extra, strict=True))
    attributes |= {"pads": (*begins, *kept), "output_padding": None}
    y = b.op("ConvTranspose", data, filters, **attributes)
    behind = [max(e - end, 0) for end, e in zip(ends, extra, strict=True)]
    return b.op("Pad", y, [0] * (rank + 4) + behind, mode="constant") if any(behind) else y


@legalizes("DeformConv", target="ir")
def deform_conv_to_ir(b: Builder, node: Node) -> Result:
    """DeformConv (19 to 25) as DeformableConvolution-8, with a bias behind it."""
    data, filters, offset = required(node, 0, 1, 2)
    rank = spatial_rank(node, filters)
    y = b.op(
        "DeformableConvolution", data, offset, filters, node.input(4),
        **full_attributes(node.attributes, rank), group=node.attributes["group"],
        deformable_group=node.attributes["offset_group"], bilinear_interpolation_pad=True,
    )  # fmt: skip
    return add_bias(b, y, node.input(3), rank)


@legalizes("DeformableConvolution", target="onnx")
def deformable_convolution_to_onnx(b: Builder, node: Node) -> Result:
    """DeformableConvolution-1 and -8 as DeformConv. Without bilinear padding, its offsets are
    clamped."""
    data, offset, filters = required(node, 0, 1, 2)
    attributes = full_attributes(node.attributes, spatial_rank(node, filters))
    attributes = explicitly_padded(data, filters.shape[2:] if filters.shape else (), attributes)
    del attributes["auto_pad"]
    groups = node.attributes["deformable_group"]
    if not node.attributes["bilinear_interpolation_pad"]:
        offset = _clamped_offsets(b, data, offset, filters, groups, attributes)
    return b.op(
        "DeformConv", data, filters, offset, None, node.input(3), **attributes,
        group=node.attributes["group"], offset_group=groups,
    )  # fmt: skip


def _clamped_offsets(
    b: Builder, data: Value, offset: Value, filters: Value, groups: int, attributes: dict[str, Any]
) -> Value:
    """Offsets that give ONNX's samples IR's values without bilinear_interpolation_pad. ONNX's
    samples fade to 0 across the border. IR uses the last row or column up to the border, and 0
    beyond it."""
    kernel = filters.shape and filters.shape[2:]
    if not kernel or not is_static(kernel):
        raise Refused("the size of its kernel is not known; give the filters a static shape")
    b.room(groups, 2, *kernel)
    taps = np.array(list(np.ndindex(*kernel))) * attributes["dilations"] - attributes["pads"][:2]
    axis_of = np.tile([0, 1], groups * len(taps))

    def channels(values: Any) -> Value:
        return b.like(np.reshape(values, (1, -1, 1, 1)), offset)

    place = channels(np.tile(taps.reshape(-1), groups))
    limits = []
    for axis, stride in enumerate(attributes["strides"]):
        steps = b.positions(offset, axis + 2) * stride
        steps = b.reshape(b.cast(steps, offset.element), *((-1, 1) if axis == 0 else (1, -1)))
        place += channels(axis_of == axis) * steps
        size = b.cast(b.sizes(data, axis + 2), offset.element)
        limits.append(channels(axis_of == axis) * size)
    limit = b.op("Add", *limits)
    sampled = offset + place
    inside = (sampled >= 0.0) & (sampled < limit)
    return b.where(inside, b.min(sampled, limit - 1.0), -2.0) - place


def explicitly_padded(
    data: Value, kernel: Sequence[Dim], attributes: dict[str, Any]
) -> dict[str, Any]:
    """The explicit attributes of a window, with pads in place of auto_pad. Refused if the pads
    depend on unknown sizes."""
    auto_pad, rank = attributes["auto_pad"], len(attributes["strides"])
    if not auto_pad.startswith("SAME"):
        return {**attributes, "auto_pad": "NOTSET"}
    spatial = data.shape[2:] if data.shape else (None,) * rank
    totals = []
    for size, length, stride, dilation in zip(
        spatial, kernel or (None,) * rank, attributes["strides"], attributes["dilations"],
        strict=True,
    ):  # fmt: skip
        known = isinstance(size, int) or stride == 1 or length == 1  # One element needs no padding.
        if not isinstance(length, int) or not known:
            raise Refused(
                f"the pads of auto_pad {auto_pad} need the size of the input and of the kernel "
                "here; give the input a static shape"
            )
        # The part of the ceil(size / stride) windows beyond the input.
        beyond = -size % stride if isinstance(size, int) else 0
        totals.append(max((length - 1) * dilation + 1 - stride + beyond, 0))
    return {**attributes, "auto_pad": "NOTSET", "pads": _at_both_ends(totals, auto_pad)}


@infers("BinaryConvolution", "Conv", "DeformConv", "DeformableConvolution", "GroupConvolution")
def infer_conv(node: Node) -> list[Type]:
    """Conv and the like: batch, the filters' output channels, and the windows. In IR groups are a
    dimension of the filters; those of DeformableConvolution are input 2."""
    data, filters = first(node), first(node, 2 if node.op == "DeformableConvolution" else 1).shape
    channels = 2 if node.op == "GroupConvolution" else 1
    return [TensorType(data.element, convolved(node, data.shape, filters, channels, channels + 1))]


def _backprop(
    node: Node, channels: Dim, kernel: Sequence[Dim] | None, output: Sequence[Dim] | None
) -> list[Type]:
    """A transposed convolution; ONNX's auto_pad SAME makes the size stride times the input's."""
    data = first(node)
    if kernel is None and data.shape is None:
        return [TensorType(data.element)]
    rank = len(kernel) if kernel is not None else len(data.shape or ()) - 2
    require(data.shape is None or (len(data.shape) == rank + 2 and rank > 0))
    require(not next(window_faults(node.attributes, rank), ""))
    require(output is None or len(output) == rank)
    full = full_attributes(node.attributes, rank)
    strides, dilations, pads = full["strides"], full["dilations"], full["pads"]
    extra = node.attributes.get("output_padding") or (0,) * rank
    batch = data.shape[0] if data.shape else ANY
    spatial: list[Dim] = []
    for i in range(rank):
        dim = data.shape[i + 2] if data.shape else ANY
        k = kernel[i] if kernel is not None else ANY
        if output is not None:
            spatial.append(output[i])
        elif not isinstance(dim, int):
            spatial.append(ANY)
        elif node.op == "ConvTranspose" and full["auto_pad"].startswith("SAME"):
            spatial.append(dim * strides[i])
        elif isinstance(k, int):
            size = (dim - 1) * strides[i] + (k - 1) * dilations[i] + 1
            spatial.append(size + extra[i] - pads[i] - pads[i + rank])
        else:
            spatial.append(ANY)
    return [TensorType(data.element, (batch, channels, *spatial))]


@infers("ConvTranspose")
def infer_conv_transpose(node: Node) -> list[Type]:
    """ConvTranspose: batch, the filters' axis 1 times the groups, and `output_shape` or what
    strides and pads give."""
    filters = first(node, 1).shape
    kernel = filters[2:] if filters else node.attributes.get("kernel_shape")
    output = node.attributes.get("output_shape")
    if output and kernel is not None:
        output = output[-len(kernel) :]
    channels = dim_product((filters[1] if filters else ANY, node.attributes["group"]))
    return _backprop(node, channels, kernel, output or None)


@infers("ConvolutionBackpropData", "GroupConvolutionBackpropData")
def infer_convolution_backprop_data(node: Node) -> list[Type]:
    """ConvolutionBackpropData, GroupConvolutionBackpropData: batch, the output channels of the
    filters [groups, inputs, outputs, …], and the output shape of input 2 or what strides and pads
    give."""
    filters = first(node, 1).shape
    grouped = node.op == "GroupConvolutionBackpropData"
    channels: Dim = ANY
    if filters:
        channels = dim_product((filters[0], filters[2])) if grouped else filters[1]
    kernel = filters[3 if grouped else 2 :] if filters else None
    return _backprop(node, channels, kernel, known_of(node.input(2)).dims)


# Constraints on the inputs ------------------------------------------------------------------------


def filters(node: Node) -> must.Constraints:
    """Conv, ConvTranspose and DeformConv: X [batch, channels, …] and W [results, channels / group,
    …], for the transposed one [channels, results / group, …]. `kernel_shape` are the last axes of
    W."""
    x, w = must.operands(node, 2)
    group, kernel = node.attributes["group"], node.attributes["kernel_shape"]
    yield must.Ranks(x, w, 0, "{} and {} differ in rank", x, w)
    yield must.Ranks(must.Operand(node.outputs[0]), x)
    if x.shape is None or w.shape is None or len(w.shape) < 3:
        return  # `window` says what there is to say.
    channels = w[1] * group if isinstance(w[1], int) else w[1]
    if node.op == "ConvTranspose":
        channels = w[0]
    yield must.Same(x[1], channels, "{} and {} differ in channels", x, w)
    if not must.multiple(w[0], group):
        yield f"{w} has no {group} groups"
    if kernel and (len(kernel) != len(w.shape) - 2 or any(map(differ, kernel, w.shape[2:]))):
        yield f"its kernel_shape is {list(kernel)}, and its weights are {w}"


def transposed_filters(node: Node) -> must.Constraints:
    """ConvolutionBackpropData-1: data [batch, channels, …] and filters [channels, results, …]."""
    x, w = must.operands(node, 2)
    if x.rank == w.rank:
        yield must.Same(x[1], w[0], "{} and {} differ in channels", x, w)


def offsets_and_mask(node: Node) -> must.Constraints:
    """DeformConv: the offsets hold two numbers for each element of a window and each of their
    groups, the mask one."""
    _, w, offsets, _, mask = must.operands(node, 5)
    groups = node.attributes["offset_group"]
    sizes = None if w.shape is None else w.shape[2:]
    if not is_static(sizes):
        return
    elements = size_of(sizes)
    for what, given, each in (("offsets", offsets, 2 * elements), ("mask", mask, elements)):
        if given.rank not in (None, w.rank) or differ(given[1], groups * each):
            yield f"{given} are no {what} for {groups} groups of {w}"
    result = must.Operand(node.outputs[0])
    for given in (offsets, mask):
        if any(map(differ, (given.shape or ())[2:], (result.shape or ())[2:])):
            yield f"{given} are not for the places of {result}"


def reached(node: Node) -> must.Constraints:
    """ConvTranspose: the input reaches the `output_shape`, but for less than a stride."""
    x, w = must.operands(node, 2)
    output = node.attributes.get("output_shape")
    if not output or x.shape is None or w.shape is None:
        return
    rank = len(w.shape) - 2
    window = full_attributes(node.attributes, rank)
    extra = node.attributes.get("output_padding") or (0,) * rank
    sizes = zip(x.shape[2:], w.shape[2:], output[-rank:], extra, strict=False)
    for axis, (size, length, wanted, more) in enumerate(sizes):
        stride, dilation = window["strides"][axis], window["dilations"][axis]
        if isinstance(size, int) and isinstance(length, int):
            whole = (size - 1) * stride + (length - 1) * dilation + 1 + more
            if wanted - whole >= stride:
                yield f"its output_shape wants {wanted} elements, of which it has {whole}"


must.hold("Conv", filters, window)
must.hold("ConvTranspose", filters, window, reached)
must.hold("DeformConv", filters, offsets_and_mask, window)
must.hold("ConvolutionBackpropData", transposed_filters, window)
must.hold(
    (
        "BinaryConvolution", "DeformableConvolution", "GroupConvolution",
        "GroupConvolutionBackpropData",
    ),
    window,
)  # fmt: skip
