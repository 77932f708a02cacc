"""Interpolate of IR."""

import math
from typing import Any

import numpy as np

from bridge.neutral.inference import constraints as must, infers_shape
from bridge.neutral.inference.dims import dim_sum, known_axes, with_dim
from bridge.neutral.inference.known import known_of, unknown
from bridge.neutral.types import F32, Dim, Shape
from bridge.operators import Builder, Node, Refused, Value, legalizes, ranks, reads, required
from bridge.operators.spatial.resample import Axis, Method, resample
from bridge.operators.spatial.resize import (
    COORDINATES,
    element_at,
    factors_for_axes,
    resized,
    vanishing_scale,
)

PILLOW_CUBIC = -0.5
"""The cubic coefficient of `bicubic_pillow`, which ignores `cube_coeff`."""


@reads("Interpolate", format="ir", until=3)
def read_interpolate_1(b: Builder, node: Node) -> Value:
    """Interpolate-1 has its axes as an attribute. In OpenVINO, the meaning of `linear` and of
    unaligned corners depends on the rank, the axes and the pads (its
    ConvertInterpolate1ToInterpolate4)."""
    data = node.attributes
    mode, axes, pads = data["mode"], list(data["axes"]), _pads(data)
    if mode == "area":
        raise Refused("OpenVINO does not implement the mode area")
    coordinates = "asymmetric"
    if data["align_corners"]:
        coordinates = "align_corners"
    if mode in ("linear", "linear_onnx"):
        (rank,) = ranks(node, 0)
        mode = "linear" if rank == 5 and mode == "linear" else "linear_onnx"
        image = rank == 4 and sorted(axes) == [2, 3]
        if coordinates == "asymmetric" and not image and not any(sum(pads.values(), ())):
            coordinates = "half_pixel"
    return b.op(
        "Interpolate",
        node.inputs[0],
        node.inputs[1],
        axes,
        mode=mode,
        shape_calculation_mode="sizes",
        coordinate_transformation_mode=coordinates,
        nearest_mode="simple",
        antialias=data["antialias"],
        **pads,
    )


@reads("Interpolate", format="ir", since=4, until=10)
def read_interpolate_4(b: Builder, node: Node) -> Value:
    """Interpolate-4 has sizes and scales, but its mode uses only one of them."""
    data = node.attributes
    x, sizes, scales = required(node, 0, 1, 2)
    by_scales = data["shape_calculation_mode"] == "scales"
    return b.op(
        "Interpolate",
        x,
        scales if by_scales else sizes,
        node.input(3),
        mode=data["mode"],
        shape_calculation_mode=data["shape_calculation_mode"],
        coordinate_transformation_mode=data["coordinate_transformation_mode"],
        nearest_mode=data["nearest_mode"],
        antialias=data["antialias"],
        cube_coeff=data["cube_coeff"],
        **_pads(data),
    )


def _pads(data: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: data[name] for name in ("pads_begin", "pads_end")}


@legalizes("Interpolate", target="onnx")
def interpolate_for_onnx(b: Builder, node: Node) -> Value:
    """Interpolate-11 as Resize if Resize computes the same, otherwise with explicit weights. As in
    OpenVINO, `antialias` has an effect only for `linear` on five axes. The Pillow modes always have
    it."""
    x, axes, wanted = padded(b, node)
    attributes, rank = node.attributes, len(x.dims)
    mode, coordinates, nearest = _in_onnx(attributes)
    by_scales = attributes["shape_calculation_mode"] == "scales"
    vanishes = by_scales and vanishing_scale(x.dims, axes, wanted)
    if coordinates is None or vanishes or _antialias(attributes, rank):
        return by_axes(b, node, x, axes, wanted)
    scales = b.cast(wanted, F32) if by_scales else None
    return b.op(
        "Resize",
        x,
        None,
        scales,
        None if by_scales else b.as_i64(wanted),
        axes=tuple(axes) if axes != list(range(rank)) else None,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest,
        cubic_coeff_a=attributes["cube_coeff"],
    )


def _in_onnx(attributes: dict[str, str]) -> tuple[str, str | None, str]:
    """Mode, coordinates and rounding in ONNX's names; `simple` is resolved later. The coordinates
    are None if ONNX lacks them."""
    mode = {"linear_onnx": "linear"}.get(attributes["mode"], attributes["mode"])
    coordinates: str | None = attributes["coordinate_transformation_mode"]
    nearest = attributes["nearest_mode"]
    if mode == "nearest" and coordinates == "tf_half_pixel_for_nn" and nearest == "floor":
        # floor((x + 0.5) / s) is (x + 0.5) / s - 0.5, rounded with halves upward.
        coordinates, nearest = "half_pixel", "round_prefer_ceil"
    if coordinates not in COORDINATES:
        coordinates = None
    if mode != "nearest":
        nearest = "round_prefer_floor"
    return mode, coordinates, nearest


def padded(b: Builder, node: Node) -> tuple[Value, list[int], Value]:
    """The padded data of an Interpolate, its axes, and their sizes or scales."""
    x, wanted = required(node, 0, 1)
    (rank,) = ranks(node, 0)
    axes = list(range(rank))
    if node.input(2) is not None:
        axes = [axis % rank for axis in b.constants(node.input(2), "its axes")]
    # ONNX would treat an input of unknown length as absent.
    wanted = wanted if known_of(wanted).length is not None else b.reshape(wanted, len(axes))
    begin, end = (
        (list(node.attributes[name]) + [0] * rank)[:rank] for name in ("pads_begin", "pads_end")
    )
    return b.op("Pad", x, begin + end) if any(begin + end) else x, axes, wanted


def _antialias(attributes: dict[str, Any], rank: int) -> bool:
    """Whether the kernel grows with the scale and ignores places outside of the input, as in
    OpenVINO."""
    return attributes["mode"].endswith("_pillow") or (
        attributes["antialias"] and attributes["mode"] == "linear" and rank == 5
    )


_KINDS = {"linear_onnx": "linear", "bilinear_pillow": "linear", "bicubic_pillow": "cubic"}
"""Modes with the weights of another mode; the settings have the differences."""


def by_axes(b: Builder, node: Node, x: Value, axes: list[int], wanted: Value) -> Value:
    """An Interpolate with explicit weights for each axis. As in OpenVINO, an axis that keeps its
    size does not change."""
    attributes = node.attributes
    mode: str = attributes["mode"]
    pillow, antialias = mode.endswith("_pillow"), _antialias(attributes, len(x.dims))
    known = known_of(wanted).array
    todo = []
    for index, axis in enumerate(axes):
        by_scales = attributes["shape_calculation_mode"] == "scales"
        before = x.dims[axis]
        if known is not None and isinstance(before, int):
            after = math.floor(before * known[index]) if by_scales else known[index]
            if after == before:
                continue
        count = b.size(x, axis)
        wide = b.cast(count, F32)
        if by_scales:
            scale = element_at(b, wanted, index)
            out = b.as_i64(b.op("Floor", wide * scale))
        else:
            out = b.as_i64(element_at(b, wanted, index))
        if pillow or not by_scales:
            scale = b.cast(out, F32) / wide
        todo.append(Axis(axis, count, out, scale))
    method = Method(
        _KINDS.get(mode, mode),
        "half_pixel" if pillow else attributes["coordinate_transformation_mode"],
        attributes["nearest_mode"],
        antialias=antialias,
        narrows=antialias and not pillow,
        exclude_outside=antialias,
        cubic=PILLOW_CUBIC if pillow else attributes["cube_coeff"],
    )
    return resample(b, x, todo, method) if todo else b.op("Identity", x)


@infers_shape("Interpolate")
def shape_of_interpolated(node: Node, dims: tuple[Dim, ...]) -> Shape:
    """Interpolate: the sizes or scales of `axes`, after the pads."""
    rank = len(dims)
    axes = known_axes(node.input(2), rank) if node.input(2) is not None else range(rank)
    if axes is None:
        return unknown(rank)
    for name in ("pads_begin", "pads_end"):
        for axis, pad in enumerate(node.attributes[name][:rank]):
            dims = with_dim(dims, axis, dim_sum((dims[axis], pad)))
    scaling = node.attributes["shape_calculation_mode"] == "scales"
    scales = known_of(node.inputs[1]).array if scaling else None
    sizes = None if scaling else known_of(node.inputs[1]).dims
    return resized(dims, axes, None if scales is None else scales.astype(np.float32), sizes)


def scales_or_sizes(node: Node) -> must.Constraints:
    """Interpolate-11: a factor or a size for each axis of input 2."""
    scaling = node.attributes.get("shape_calculation_mode") != "sizes"
    scales = node.input(1) if scaling else None
    yield from factors_for_axes(node, known_of(node.input(2)).ints, (1,), scales)


must.hold("Interpolate", must.axes_in(2), must.has_rank(1, 1, of=1), scales_or_sizes)
