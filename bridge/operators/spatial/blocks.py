"""Operators on blocks: SpaceToDepth, DepthToSpace, SpaceToBatch, BatchToSpace. Also
ShuffleChannels, ReorgYolo and ExtractImagePatches."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from bridge.neutral.inference import constraints as must, infers_shape
from bridge.neutral.inference.dims import dim_product
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, Dim, Shape, is_static
from bridge.operators import Builder, Node, Refused, Value, legalizes, ranked, ranks, required


def _over(size: int | Value, by: int) -> int | Value:
    if isinstance(size, int):
        return size // by
    return size if by == 1 else size / [by]


def _times(size: int | Value, by: int) -> int | Value:
    if isinstance(size, int):
        return size * by
    return size if by == 1 else size * [by]


def gathered(b: Builder, x: Value, into: int, blocks: Sequence[int], behind: bool = False) -> Value:
    """Moves the inner elements of blocks into the axis `into`. The blocks are along the axes behind
    this axis. The elements become its outer index, or with `behind` its inner index."""
    *batch, depth = (b.dim(x, axis) for axis in range(into + 1))
    space = [b.dim(x, axis) for axis in range(into + 1, len(x.dims))]
    pairs = list(zip(space, blocks, strict=True))
    parts = [part for size, block in pairs for part in (_over(size, block), block)]
    split = b.reshape(x, *batch, depth, *parts)
    end = into + 1 + len(parts)
    inner, outer = range(into + 2, end, 2), range(into + 1, end, 2)
    front = (into, *inner) if behind else (*inner, into)
    moved = b.transpose(split, *range(into), *front, *outer)
    depth = _times(depth, math.prod(blocks))
    return b.reshape(moved, *batch, depth, *(_over(size, block) for size, block in pairs))


def spread(b: Builder, x: Value, of: int, blocks: Sequence[int], behind: bool = False) -> Value:
    """The inverse of `_gathered`: moves elements of the axis `of` into blocks of the axes behind
    it."""
    *batch, depth = (b.dim(x, axis) for axis in range(of + 1))
    space = [b.dim(x, axis) for axis in range(of + 1, len(x.dims))]
    count = len(blocks)
    depth = _over(depth, math.prod(blocks))
    split = b.reshape(x, *batch, *((depth, *blocks) if behind else (*blocks, depth)), *space)
    first, rest = (of + 1, of) if behind else (of, of + count)
    pairs = [axis for i in range(count) for axis in (of + count + 1 + i, first + i)]
    moved = b.transpose(split, *range(of), rest, *pairs)
    whole = [_times(size, block) for size, block in zip(space, blocks, strict=True)]
    return b.reshape(moved, *batch, depth, *whole)


@legalizes("SpaceToDepth", target="onnx")
def space_to_depth_for_onnx(b: Builder, node: Node) -> Value | None:
    """SpaceToDepth (1 to 28). ONNX accepts only images, and only one order before operator set
    28."""
    x, rank = ranked(node)
    mode, blocks = node.attributes["mode"], [node.attributes["blocksize"]] * (rank - 2)
    return None if rank == 4 and mode == "DCR" else gathered(b, x, 1, blocks, mode == "CRD")


@legalizes("DepthToSpace", target="onnx")
def depth_to_space_for_onnx(b: Builder, node: Node) -> Value | None:
    """DepthToSpace (1 to 28). ONNX accepts only images."""
    x, rank = ranked(node)
    blocks = [node.attributes["blocksize"]] * (rank - 2)
    return None if rank == 4 else spread(b, x, 1, blocks, node.attributes["mode"] == "CRD")


@legalizes("SpaceToBatch", target="onnx")
def space_to_batch_for_onnx(b: Builder, node: Node) -> Value:
    """SpaceToBatch-2: pads, then moves blocks of every axis into the batch."""
    x, _, begin, end = node.inputs
    blocks = b.constants(node.inputs[1], "its block_shape")
    ranks(node, 0)
    return gathered(b, b.op("ir::Pad", x, begin, end, pad_mode="constant"), 0, blocks[1:])


@legalizes("BatchToSpace", target="onnx")
def batch_to_space_for_onnx(b: Builder, node: Node) -> Value:
    """BatchToSpace-2: moves blocks of every axis out of the batch, then crops."""
    x, begin, end = required(node, 0, 2, 3)
    blocks = b.constants(node.inputs[1], "its block_shape")
    ranks(node, 0)
    joined = spread(b, x, 0, blocks[1:])
    crops = [known_of(begin).ints, known_of(end).ints]
    if crops[0] is not None and crops[1] is not None and not any(crops[0] + crops[1]):
        return joined
    less = (-crop for crop in (begin, end))
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
    split = b.reshape(x, *dims[:axis], group, _over(dims[axis], group), *dims[axis + 1 :])
    moved = b.transpose(split, *range(axis), axis + 1, axis, *range(axis + 2, rank + 1))
    return b.reshape(moved, *dims)


@legalizes("ReorgYolo", target="onnx")
def reorg_yolo_for_onnx(b: Builder, node: Node) -> Value:
    """ReorgYolo-1, as in Darknet: reads the input as fewer and larger images."""
    x, _ = ranked(node)
    stride = node.attributes["stride"][0]
    batch, channels, *space = (b.dim(x, axis) for axis in range(4))
    fewer = _over(channels, stride * stride)
    images = b.reshape(x, batch, fewer, *(_times(size, stride) for size in space))
    cut = b.op("SpaceToDepth", images, blocksize=stride, mode="DCR")
    depth = _times(channels, stride * stride)
    return b.reshape(cut, batch, depth, *(_over(size, stride) for size in space))


@legalizes("ExtractImagePatches", target="onnx")
def extract_image_patches_for_onnx(b: Builder, node: Node) -> Value:
    """ExtractImagePatches-3: one strided slice for each place in the patch, concatenated along the
    channels."""
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
    b.room(*sizes_)
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
    """The number of patches of ExtractImagePatches along each axis, if it is known."""
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


@infers_shape("SpaceToDepth")
def shape_of_depth(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """SpaceToDepth: the space divided by the block size, and the channels times the block's
    volume."""
    size = node.attributes["blocksize"]
    batch, channels, *spatial = dims
    depth = dim_product((channels, size ** len(spatial)))
    return (batch, depth, *(_divided(d, size) for d in spatial))


@infers_shape("DepthToSpace")
def shape_of_space(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """DepthToSpace: the space times the block size, and the channels divided by the block's
    volume."""
    size = node.attributes["blocksize"]
    batch, depth, *spatial = dims
    channels = _divided(depth, size ** len(spatial))
    return (batch, channels, *(dim_product((d, size)) for d in spatial))


def whole_blocks(node: Node) -> must.Constraints:
    """SpaceToDepth and DepthToSpace: the sizes must be whole blocks, or the channels must fill
    whole blocks."""
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
