"""Blocks: SpaceToDepth, DepthToSpace, SpaceToBatch, BatchToSpace, ShuffleChannels, ReorgYolo and
ExtractImagePatches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from bridge.neutral.builder import integers
from bridge.neutral.inference import constraints as must, first, infers, infers_shape, require
from bridge.neutral.inference.dims import dim_product, dim_sum, known_integers, unknown
from bridge.neutral.types import ANY, Dim, Shape, TensorType, Type, is_static
from bridge.operators import Builder, Node, Refused, Value, legalizes, ranked, ranks, required


def _over(b: Builder, size: int | Value, by: int) -> int | Value:
    if isinstance(size, int):
        return size // by
    return size if by == 1 else b.op("Div", size, [by])


def _times(b: Builder, size: int | Value, by: int) -> int | Value:
    if isinstance(size, int):
        return size * by
    return size if by == 1 else b.op("Mul", size, [by])


@legalizes("SpaceToDepth", target="onnx")
def space_to_depth_for_onnx(b: Builder, node: Node) -> Value | None:
    """SpaceToDepth (1 to 28): ONNX takes images alone, and has one order before operator set 28."""
    x, rank = ranked(node)
    block = node.attributes["blocksize"]
    if rank == 4 and node.attributes["mode"] == "DCR":
        return None
    batch, channels, *space = (b.dim(x, axis) for axis in range(rank))
    count = len(space)
    parts = [part for size in space for part in (_over(b, size, block), block)]
    split = b.reshape(x, batch, channels, *parts)
    inner, outer = range(3, rank + count, 2), range(2, rank + count, 2)
    front = (0, *inner, 1) if node.attributes["mode"] == "DCR" else (0, 1, *inner)
    moved = b.transpose(split, *front, *outer)
    depth = _times(b, channels, block**count)
    return b.reshape(moved, batch, depth, *(_over(b, size, block) for size in space))


@legalizes("DepthToSpace", target="onnx")
def depth_to_space_for_onnx(b: Builder, node: Node) -> Value | None:
    """DepthToSpace (1 to 28): ONNX takes images alone."""
    x, rank = ranked(node)
    block = node.attributes["blocksize"]
    if rank == 4:
        return None
    batch, depth, *space = (b.dim(x, axis) for axis in range(rank))
    count = len(space)
    channels = _over(b, depth, block**count)
    blocks = [block] * count
    if node.attributes["mode"] == "DCR":
        split = b.reshape(x, batch, *blocks, channels, *space)
        first, channel = 1, count + 1
    else:
        split = b.reshape(x, batch, channels, *blocks, *space)
        first, channel = 2, 1
    pairs = [axis for i in range(count) for axis in (count + 2 + i, first + i)]
    moved = b.transpose(split, 0, channel, *pairs)
    return b.reshape(moved, batch, channels, *(_times(b, size, block) for size in space))


@legalizes("SpaceToBatch", target="onnx")
def space_to_batch_for_onnx(b: Builder, node: Node) -> Value:
    """SpaceToBatch-2: pads, then moves blocks of every axis into the batch."""
    x, _, begin, end = node.inputs
    blocks = b.constants(node.inputs[1], "its block_shape")
    (rank,) = ranks(node, 0)
    padded = b.op("ir::Pad", x, begin, end, pad_mode="constant")
    batch, *space = (b.dim(padded, axis) for axis in range(rank))
    inner = [
        part
        for size, block in zip(space, blocks[1:], strict=True)
        for part in (_over(b, size, block), block)
    ]
    split = b.reshape(padded, batch, *inner)
    moved = b.transpose(split, *range(2, 2 * rank, 2), 0, *range(1, 2 * rank - 1, 2))
    rest = (_over(b, size, block) for size, block in zip(space, blocks[1:], strict=True))
    return b.reshape(moved, _times(b, batch, math.prod(blocks)), *rest)


@legalizes("BatchToSpace", target="onnx")
def batch_to_space_for_onnx(b: Builder, node: Node) -> Value:
    """BatchToSpace-2: moves blocks of every axis out of the batch, then crops."""
    x, begin, end = required(node, 0, 2, 3)
    blocks = b.constants(node.inputs[1], "its block_shape")
    (rank,) = ranks(node, 0)
    batch, *space = (b.dim(x, axis) for axis in range(rank))
    batch = _over(b, batch, math.prod(blocks))
    split = b.reshape(x, *blocks[1:], batch, *space)
    pairs = [axis for i in range(rank - 1) for axis in (rank + i, i)]
    moved = b.transpose(split, rank - 1, *pairs)
    whole = [_times(b, size, block) for size, block in zip(space, blocks[1:], strict=True)]
    joined = b.reshape(moved, batch, *whole)
    crops = [integers(begin), integers(end)]
    if crops[0] is not None and crops[1] is not None and not any(crops[0] + crops[1]):
        return joined
    less = (b.op("Neg", crop) for crop in (begin, end))
    if crops[0] is not None and crops[1] is not None:
        less = (b.constant([-c for c in crop]) for crop in (crops[0], crops[1]))
    return b.op("ir::Pad", joined, *less, pad_mode="constant")


@legalizes("ShuffleChannels", target="onnx")
def shuffle_channels_for_onnx(b: Builder, node: Node) -> Value:
    """ShuffleChannels-1: groups of an axis become its inner index."""
    x, rank = ranked(node)
    group = node.attributes["group"]
    axis = node.attributes["axis"] % rank
    dims = [b.dim(x, i) for i in range(rank)]
    split = b.reshape(x, *dims[:axis], group, _over(b, dims[axis], group), *dims[axis + 1 :])
    moved = b.transpose(split, *range(axis), axis + 1, axis, *range(axis + 2, rank + 1))
    return b.reshape(moved, *dims)


@legalizes("ReorgYolo", target="onnx")
def reorg_yolo_for_onnx(b: Builder, node: Node) -> Value:
    """ReorgYolo-1, as Darknet has it: the input is taken for one of larger, fewer images."""
    x, _ = ranked(node)
    stride = node.attributes["stride"][0]
    batch, channels, *space = (b.dim(x, axis) for axis in range(4))
    fewer = _over(b, channels, stride * stride)
    images = b.reshape(x, batch, fewer, *(_times(b, size, stride) for size in space))
    cut = b.op("SpaceToDepth", images, blocksize=stride, mode="DCR")
    depth = _times(b, channels, stride * stride)
    return b.reshape(cut, batch, depth, *(_over(b, size, stride) for size in space))


@legalizes("ExtractImagePatches", target="onnx")
def extract_image_patches_for_onnx(b: Builder, node: Node) -> Value:
    """ExtractImagePatches-3: one strided slice for each place in the patch, joined in depth."""
    x, _ = ranked(node)
    sizes_, strides, rates = (node.attributes[n] for n in ("sizes", "strides", "rates"))
    space = x.dims[2:]
    if not is_static(space):
        raise Refused("the size of its images is not known; give the graph's inputs static shapes")
    counts, pads = _patches(node, space), []
    for size, count, patch, stride, rate in zip(space, counts, sizes_, strides, rates, strict=True):
        missing = max(0, (count - 1) * stride + (patch - 1) * rate + 1 - size)
        less = missing // 2
        upper = node.attributes["auto_pad"] == "same_upper"
        pads.append((less, missing - less) if upper else (missing - less, less))
    begin, end = ([0, 0, *(p[side] for p in pads)] for side in (0, 1))
    padded = b.op("Pad", x, begin + end) if any(begin + end) else x
    parts = []
    for place in product(*(range(size) for size in sizes_)):
        starts = [at * rate for at, rate in zip(place, rates, strict=True)]
        ends = [
            start + (count - 1) * stride + 1
            for start, count, stride in zip(starts, counts, strides, strict=True)
        ]
        bounds = (starts, ends, [2, 3], list(strides))
        parts.append(b.op("Slice", padded, *(b.constant(bound) for bound in bounds)))
    return b.concat(1, *parts)


def _patches(node: Node, space: Sequence[Dim]) -> list[Any]:
    """How many patches ExtractImagePatches takes along each axis, as far as that is known."""
    counts: list[Dim] = []
    sizes, strides, rates = (node.attributes[n] for n in ("sizes", "strides", "rates"))
    for dim, size, stride, rate in zip(space, sizes, strides, rates, strict=True):
        if not isinstance(dim, int):
            counts.append(ANY)
        elif node.attributes["auto_pad"] == "valid":
            counts.append((dim - (size - 1) * rate - 1) // stride + 1)
        else:
            counts.append(-(-dim // stride))
    return counts


def _divided(dim: Dim, by: int) -> Dim:
    return dim if by == 1 else dim // by if isinstance(dim, int) else ANY


@infers_shape("SpaceToDepth", "ReorgYolo")
def shape_of_depth(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """SpaceToDepth, ReorgYolo: space over the block size, channels times its volume."""
    require(len(dims) > 2)
    size = node.attributes["stride"][0] if node.op == "ReorgYolo" else node.attributes["blocksize"]
    batch, channels, *spatial = dims
    depth = dim_product((channels, size ** len(spatial)))
    return (batch, depth, *(_divided(d, size) for d in spatial))


@infers_shape("DepthToSpace")
def shape_of_space(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """DepthToSpace: space times the block size, channels over its volume."""
    require(len(dims) > 2)
    size = node.attributes["blocksize"]
    batch, depth, *spatial = dims
    channels = _divided(depth, size ** len(spatial))
    return (batch, channels, *(dim_product((d, size)) for d in spatial))


@infers_shape("SpaceToBatch")
def shape_of_batch(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """SpaceToBatch: padded axes over their blocks, batch times the blocks' volume."""
    block, begin, end = (known_integers(value) for value in node.inputs[1:4])
    if block is None or begin is None or end is None:
        return unknown(len(dims))
    whole = [dim_sum((d, b, e)) for d, b, e in zip(dims, begin, end, strict=True)]
    batch = dim_product((whole[0], math.prod(block)))
    return (batch, *map(_divided, whole[1:], block[1:]))


@infers_shape("BatchToSpace")
def shape_of_spread_batch(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """BatchToSpace: axes times their blocks and cropped, batch over the blocks' volume."""
    block, begin, end = (known_integers(value) for value in node.inputs[1:4])
    if block is None or begin is None or end is None:
        return unknown(len(dims))
    result: list[Dim] = [_divided(dims[0], math.prod(block))]
    for dim, size, front, back in zip(dims[1:], block[1:], begin[1:], end[1:], strict=True):
        whole = dim_product((dim, size))
        if isinstance(whole, int):
            whole -= front + back
        elif front + back:
            whole = ANY
        result.append(whole)
    return tuple(result)


@infers("ExtractImagePatches")
def infer_extract_image_patches(node: Node) -> list[Type]:
    """ExtractImagePatches: [batch, channels * size of a patch, rows, columns] of patches."""
    data = first(node)
    if data.shape is None:
        return [TensorType(data.element, (ANY,) * 4)]
    batch, channels, *space = data.shape
    depth = dim_product((channels, math.prod(node.attributes["sizes"])))
    return [TensorType(data.element, (batch, depth, *_patches(node, space)))]


def whole_blocks(node: Node) -> must.Constraints:
    """SpaceToDepth and DepthToSpace: sizes that are so many blocks, or channels of which each block
    has so many."""
    (x,), block = must.operands(node, 1), node.attributes["blocksize"]
    if block < 1:
        yield f"its blocks have the size {block}"
    elif x.shape is not None and len(x.shape) > 2:
        spatial = node.op == "SpaceToDepth"
        parts = x.shape[2:] if spatial else x.shape[1:2]
        by = block if spatial else block ** (len(x.shape) - 2)
        if not all(must.multiple(dim, by) for dim in parts):
            yield f"{x} has no blocks of {block}"


must.hold(("DepthToSpace", "SpaceToDepth"), must.has_rank(3), whole_blocks)
must.hold("ShuffleChannels", must.axis_attribute("axis"))
