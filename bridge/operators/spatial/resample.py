"""Resizing axis by axis with explicit weights, for cases that the target's own operator lacks.

A matrix [out, in] of weights resizes one axis; for the nearest element, a Gather does. Linear and
cubic interpolation are separable, so that several axes are resized one after another.
"""

from dataclasses import dataclass, replace

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Value


@dataclass(frozen=True)
class Axis:
    """One axis to resize. `size` and `out` are the numbers of elements (i64 scalars), and `scale`
    is an f32 scalar. For tf_crop_and_resize, the region of interest has a start and an end, as
    fractions (f32 scalars)."""

    number: int
    size: Value
    out: Value
    scale: Value
    start: Value | None = None
    end: Value | None = None


@dataclass(frozen=True)
class Method:
    """The method of interpolation, in the names of ONNX's Resize. `antialias` widens the kernel on
    axes that shrink. If it also `narrows`, elements between its places are 0. `extrapolation` is
    the value outside of the input (tf_crop_and_resize only)."""

    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    exclude_outside: bool = False
    cubic: float = -0.75
    extrapolation: float | None = None
    narrows: bool = False


def resample(b: Builder, x: Value, axes: list[Axis], method: Method) -> Value:
    """`x`, with known rank, after resizing of `axes` (Resize-19)."""
    element = x.element
    if method.mode != "nearest":
        x = b.cast(x, F32)
    for axis in axes:
        x = _axis(b, x, axis, method)
    return b.cast(x, element)


def _axis(b: Builder, x: Value, axis: Axis, method: Method) -> Value:
    if method.antialias:
        # onnxruntime and Pillow do not change an axis that keeps its size.
        axis = replace(axis, scale=b.where(axis.out.equal(axis.size), 1.0, axis.scale))
    at = _coordinates(b, axis, method)
    last = b.cast(axis.size - 1, F32)
    if method.mode == "nearest":
        place = b.max(b.min(_rounded(b, at, axis, method.nearest), last), 0.0)
        y = b.op("Gather", x, b.cast(place, I64), axis.number)
    else:
        y = _weighted(b, x, axis.number, _weights(b, at, axis, last, method))
    if method.extrapolation is None:
        return y
    outside = (at < 0.0) | (at > last)
    behind = len(x.dims) - 1 - axis.number
    outside = b.unsqueeze(outside, *range(1, behind + 1)) if behind else outside
    return b.where(outside, method.extrapolation, y)


def _weighted(b: Builder, x: Value, axis: int, weights: Value) -> Value:
    """`x` with `weights` [out, in] applied to one axis."""
    rank = len(x.dims)
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(rank)]
    y = b.op("MatMul", b.transpose(x, *order), b.transpose(weights, 1, 0))
    return b.transpose(y, *back)


def _coordinates(b: Builder, axis: Axis, method: Method) -> Value:
    """The places of the elements of the output in the input: f32 [out]."""
    place = b.cast(b.op("Range", 0, axis.out, 1), F32)
    size, out = b.cast(axis.size, F32), b.cast(axis.out, F32)
    half = (place + 0.5) / axis.scale - 0.5
    between = b.max(out - 1.0, 1.0)
    match method.coordinates:
        case "asymmetric":
            return place / axis.scale
        case "pytorch_half_pixel":
            return _if_single(b, axis.out, place, half)
        case "tf_half_pixel_for_nn":
            # An axis of scale 1 does not change.
            return b.where(axis.scale.equal(1.0), place, half + 0.5)
        case "align_corners":
            return place * (size - 1.0) / between
        case "half_pixel_symmetric":
            part = out / (axis.scale * size)
            return size / 2.0 * (1.0 - part) + half
        case "tf_crop_and_resize":
            last, start, end = size - 1.0, axis.start, axis.end
            assert start is not None and end is not None
            step = (end - start) * last / between
            run = start * last + place * step
            return _if_single(b, axis.out, (start + end) * last * 0.5 + place, run)
    return half


def _if_single(b: Builder, out: Value, one: Value, more: Value) -> Value:
    """`one` if the resized axis has a single element with place 0, otherwise `more`."""
    known = known_of(out).ints
    if known is not None:
        return one if known == (1,) else more
    return b.where(out.equal(1), one, more)


def _rounded(b: Builder, at: Value, axis: Axis, mode: str) -> Value:
    match mode:
        case "floor":
            return b.op("Floor", at)
        case "ceil":
            return b.op("Ceil", at)
        case "round_prefer_ceil":
            return b.op("Floor", at + 0.5)
        case "simple":
            return b.where(axis.scale < 1.0, b.op("Ceil", at), b.op("Floor", at))
    return b.op("Ceil", at - 0.5)


def _weights(b: Builder, at: Value, axis: Axis, last: Value, method: Method) -> Value:
    """The weights [out, in] of every element of the input for every element of the output.

    There is a kernel around each coordinate. The part of a kernel outside of the input counts for
    the element at the edge, or it is excluded.
    """
    factor = axis.scale if method.antialias else b.constant(1.0)
    if not method.narrows:
        factor = b.min(factor, 1.0)
    reach = b.op("Ceil", (2.0 if method.mode == "cubic" else 1.0) / factor)
    margin = b.constant(0) if method.exclude_outside else b.cast(reach, I64) + 1
    stop = axis.size + margin
    places = b.cast(b.op("Range", -margin, stop, 1), F32)
    distance = (places - b.unsqueeze(at, 1)) * factor
    kernel = _cubic(b, distance, method.cubic) if method.mode == "cubic" else _linear(b, distance)
    total = b.op("ReduceSum", kernel, [1], keepdims=True)
    if method.narrows:
        total = b.max(total, float(np.finfo(np.float32).tiny))
    weights = kernel / total
    if method.exclude_outside:
        return weights
    inside = b.max(b.min(places, last), 0.0)
    pixels = b.cast(b.op("Range", 0, axis.size, 1), F32)
    edges = b.cast(b.unsqueeze(inside, 1).equal(pixels), F32)
    return b.op("MatMul", weights, edges)


def _linear(b: Builder, distance: Value) -> Value:
    return b.max(b.constant(1.0) - abs(distance), 0.0)


def _cubic(b: Builder, distance: Value, a: float) -> Value:
    """Keys' cubic convolution kernel with the coefficient `a`."""
    d = abs(distance)
    # (a+2)d³ - (a+3)d² + 1 for distances up to 1, and ad³ - 5ad² + 8ad - 4a from 1 to 2.
    near = (((a + 2) * d + -(a + 3)) * d + 0.0) * d + 1.0
    far = ((a * d + -5 * a) * d + 8 * a) * d + -4 * a
    far = b.where(d < 2.0, far, 0.0)
    return b.where(d <= 1.0, near, far)
