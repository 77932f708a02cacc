"""Images and blocks: Resize, Interpolate, GridSample, Col2Im, SpaceToDepth and the like: types."""

from __future__ import annotations

import math

import numpy as np

from bridge.neutral.builder import values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import first, infers
from bridge.neutral.inference.dims import (
    dim_product,
    dim_sum,
    known_axes,
    known_integers,
    length_of,
    shape_in,
    unknown,
    with_dim,
)
from bridge.neutral.types import ANY, U8, Dim, TensorType, Type


def _scaled(dim: Dim, scale: float) -> Dim:
    if scale == 1:
        return dim
    return math.floor(dim * scale) if isinstance(dim, int) else ANY


def _given(value: Value | None) -> bool:
    """Whether an optional input is there; ONNX spells an absent one as an empty tensor, too."""
    return value is not None and length_of(value) != 0


@infers("Resize")
def resize(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    rank = len(data.shape)
    axes = tuple(a % rank for a in node.attributes.get("axes") or range(rank))
    dims: tuple[Dim, ...] = data.shape
    if _given(node.input(2)):
        scales = values_of(node.inputs[2])
        for index, axis in enumerate(axes):
            dim = ANY if scales is None else _scaled(data.shape[axis], float(scales[index]))
            dims = with_dim(dims, axis, dim)
        return [TensorType(data.element, dims)]
    sizes = shape_in(node.input(3))
    stretched = node.attributes["keep_aspect_ratio_policy"] == "stretch"
    for index, axis in enumerate(axes):
        dims = with_dim(dims, axis, sizes[index] if sizes is not None and stretched else ANY)
    return [TensorType(data.element, dims)]


@infers("Upsample")
def upsample(node: Node) -> list[Type]:
    data = first(node)
    scales = values_of(node.inputs[1])
    if data.shape is None or scales is None:
        return [TensorType(data.element, unknown(data.rank))]
    dims = tuple(_scaled(d, float(s)) for d, s in zip(data.shape, scales, strict=True))
    return [TensorType(data.element, dims)]


@infers("Interpolate")
def interpolate(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [data]
    rank = len(data.shape)
    axes = tuple(range(rank))
    if node.input(2) is not None:
        known = known_axes(node.inputs[2], rank)
        if known is None:
            return [TensorType(data.element, unknown(rank))]
        axes = known
    dims: tuple[Dim, ...] = data.shape
    for name in ("pads_begin", "pads_end"):
        for axis, pad in enumerate(node.attributes[name][:rank]):
            dims = with_dim(dims, axis, dim_sum((dims[axis], pad)))
    scaling = node.attributes["shape_calculation_mode"] == "scales"
    scales = values_of(node.inputs[1]) if scaling else None
    sizes = None if scaling else shape_in(node.inputs[1])
    for index, axis in enumerate(axes):
        dim: Dim = ANY
        if scales is not None:
            dim = _scaled(dims[axis], float(np.float32(scales[index])))
        elif sizes is not None:
            dim = sizes[index]
        dims = with_dim(dims, axis, dim)
    return [TensorType(data.element, dims)]


@infers("GridSample")
def grid_sample(node: Node) -> list[Type]:
    data, grid = first(node), first(node, 1)
    rank = data.rank if data.rank is not None else grid.rank
    if rank is None:
        return [TensorType(data.element)]
    leading = data.shape[:2] if data.shape is not None else (ANY, ANY)
    spatial = grid.shape[1:-1] if grid.shape is not None else (ANY,) * (rank - 2)
    return [TensorType(data.element, (*leading, *spatial))]


@infers("AffineGrid")
def affine_grid(node: Node) -> list[Type]:
    theta, size = first(node), shape_in(node.inputs[1])
    if size is None:
        return [TensorType(theta.element)]
    return [TensorType(theta.element, (size[0], *size[2:], len(size) - 2))]


@infers("Col2Im")
def col2im(node: Node) -> list[Type]:
    data = first(node)
    image, block = shape_in(node.inputs[1]), known_integers(node.inputs[2])
    count = length_of(node.inputs[1]) or length_of(node.inputs[2])
    if count is None:
        return [TensorType(data.element)]
    rows = data.shape[-2] if data.shape is not None else ANY
    batch = data.shape[:-2] if data.shape is not None else (ANY,)
    channels: Dim = ANY
    if isinstance(rows, int) and block is not None:
        channels = rows // math.prod(block)
    return [TensorType(data.element, (*batch, channels, *(image or (ANY,) * count)))]


def _divided(dim: Dim, by: int) -> Dim:
    return dim if by == 1 else dim // by if isinstance(dim, int) else ANY


@infers("SpaceToDepth")
def space_to_depth(node: Node) -> list[Type]:
    data, size = first(node), node.attributes["blocksize"]
    if data.shape is None:
        return [data]
    batch, channels, *spatial = data.shape
    depth = dim_product((channels, size ** len(spatial)))
    return [TensorType(data.element, (batch, depth, *(_divided(d, size) for d in spatial)))]


@infers("DepthToSpace")
def depth_to_space(node: Node) -> list[Type]:
    data, size = first(node), node.attributes["blocksize"]
    if data.shape is None:
        return [data]
    batch, depth, *spatial = data.shape
    channels = _divided(depth, size ** len(spatial))
    return [TensorType(data.element, (batch, channels, *(dim_product((d, size)) for d in spatial)))]


@infers("SpaceToBatch")
def space_to_batch(node: Node) -> list[Type]:
    data = first(node)
    block, begin, end = (known_integers(value) for value in node.inputs[1:4])
    if data.shape is None or block is None or begin is None or end is None:
        return [TensorType(data.element, unknown(data.rank))]
    dims = [dim_sum((d, b, e)) for d, b, e in zip(data.shape, begin, end, strict=True)]
    batch = dim_product((dims[0], math.prod(block)))
    return [
        TensorType(
            data.element,
            (batch, *(_divided(d, b) for d, b in zip(dims[1:], block[1:], strict=True))),
        )
    ]


@infers("BatchToSpace")
def batch_to_space(node: Node) -> list[Type]:
    data = first(node)
    block, begin, end = (known_integers(value) for value in node.inputs[1:4])
    if data.shape is None or block is None or begin is None or end is None:
        return [TensorType(data.element, unknown(data.rank))]
    dims: list[Dim] = [_divided(data.shape[0], math.prod(block))]
    for dim, size, front, back in zip(data.shape[1:], block[1:], begin[1:], end[1:], strict=True):
        whole = dim_product((dim, size))
        if isinstance(whole, int):
            whole -= front + back
        elif front + back:
            whole = ANY
        dims.append(whole)
    return [TensorType(data.element, tuple(dims))]


@infers("ShuffleChannels")
def shuffle_channels(node: Node) -> list[Type]:
    return [first(node)]


@infers("ReorgYolo")
def reorg_yolo(node: Node) -> list[Type]:
    data, stride = first(node), node.attributes["stride"][0]
    if data.shape is None:
        return [data]
    batch, channels, *spatial = data.shape
    depth = dim_product((channels, stride * stride))
    return [TensorType(data.element, (batch, depth, *(_divided(d, stride) for d in spatial)))]


@infers("ExtractImagePatches")
def extract_image_patches(node: Node) -> list[Type]:
    data = first(node)
    if data.shape is None:
        return [TensorType(data.element, (ANY,) * 4)]
    batch, channels, *spatial = data.shape
    sizes, strides, rates = (node.attributes[n] for n in ("sizes", "strides", "rates"))
    dims: list[Dim] = []
    for dim, size, stride, rate in zip(spatial, sizes, strides, rates, strict=True):
        if not isinstance(dim, int):
            dims.append(ANY)
        elif node.attributes["auto_pad"] == "valid":
            dims.append((dim - (size + (size - 1) * (rate - 1))) // stride + 1)
        else:
            dims.append(-(-dim // stride))
    return [TensorType(data.element, (batch, dim_product((channels, math.prod(sizes))), *dims))]


@infers("ImageDecoder")
def image_decoder(node: Node) -> list[Type]:
    return [TensorType(U8, (ANY, ANY, 1 if node.attributes["pixel_format"] == "Grayscale" else 3))]
