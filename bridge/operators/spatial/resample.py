"""Resizing written out, axis for axis: for what the target's own operator cannot do.

One axis is resized by a matrix [out, in] of weights (or, for the nearest element, by Gather), so
several axes one after the other: linear and cubic interpolation are separable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bridge.neutral.builder import integers
from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Value


@dataclass(frozen=True)
class Axis:
    """One axis to resize: `size` and `out` elements (i64 scalars), `scale` (f32 scalar) and where
    the region of interest starts and ends, as fractions (f32 scalars; tf_crop_and_resize only)."""

    number: int
    size: Value
    out: Value
    scale: Value
    start: Value | None = None
    end: Value | None = None


@dataclass(frozen=True)
class Method:
    """How to interpolate, in the words of ONNX's Resize. `antialias` widens the kernel on axes
    that shrink; if it `narrows`, too, elements between its places are 0. `extrapolation` is the
    value outside of the input (tf_crop_and_resize only)."""

    mode: str
    coordinates: str
    nearest: str = "round_prefer_floor"
    antialias: bool = False
    exclude_outside: bool = False
    cubic: float = -0.75
    extrapolation: float | None = None
    narrows: bool = False


def resample(b: Builder, x: Value, axes: list[Axis], method: Method) -> Value:
    """`x`, of known rank, with `axes` resized (Resize-19)."""
    element = x.element
    if method.mode != "nearest":
        x = b.cast(x, F32)
    for axis in axes:
        x = _axis(b, x, axis, method)
    return b.cast(x, element)


def _axis(b: Builder, x: Value, axis: Axis, method: Method) -> Value:
    if method.antialias:
        # An axis that keeps its size is left as it is, in onnxruntime and in Pillow.
        kept = b.op("Equal", axis.out, axis.size)
        axis = replace(axis, scale=b.op("Where", kept, _f(b, 1), axis.scale))
    at = _coordinates(b, axis, method)
    last = b.cast(b.op("Sub", axis.size, 1), F32)
    if method.mode == "nearest":
        place = b.op("Max", b.op("Min", _rounded(b, at, axis, method.nearest), last), _f(b, 0))
        y = b.op("Gather", x, b.cast(place, I64), axis.number)
    else:
        y = _weighted(b, x, axis.number, _weights(b, at, axis, last, method))
    if method.extrapolation is None:
        return y
    outside = b.op("Or", b.op("Less", at, _f(b, 0)), b.op("Greater", at, last))
    behind = len(x.dims) - 1 - axis.number
    outside = b.unsqueeze(outside, *range(1, behind + 1)) if behind else outside
    return b.op("Where", outside, method.extrapolation, y)


def _f(b: Builder, number: float) -> Value:
    return b.constant(float(number))


def _weighted(b: Builder, x: Value, axis: int, weights: Value) -> Value:
    """`x` with `weights` [out, in] applied to one axis."""
    rank = len(x.dims)
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [order.index(i) for i in range(rank)]
    y = b.op("MatMul", b.transpose(x, *order), b.transpose(weights, 1, 0))
    return b.transpose(y, *back)


def _coordinates(b: Builder, axis: Axis, method: Method) -> Value:
    """Where the elements of the output lie in the input: f32 [out]."""
    place = b.cast(b.op("Range", 0, axis.out, 1), F32)
    size, out = b.cast(axis.size, F32), b.cast(axis.out, F32)
    half = b.op("Sub", b.op("Div", b.op("Add", place, _f(b, 0.5)), axis.scale), _f(b, 0.5))
    between = b.op("Max", b.op("Sub", out, _f(b, 1)), _f(b, 1))
    match method.coordinates:
        case "asymmetric":
            return b.op("Div", place, axis.scale)
        case "pytorch_half_pixel":
            return _if_single(b, axis.out, place, half)
        case "tf_half_pixel_for_nn":
            # An axis of scale 1 is left as it is.
            kept = b.op("Equal", axis.scale, _f(b, 1))
            return b.op("Where", kept, place, b.op("Add", half, _f(b, 0.5)))
        case "align_corners":
            return b.op("Div", b.op("Mul", place, b.op("Sub", size, _f(b, 1))), between)
        case "half_pixel_symmetric":
            part = b.op("Div", out, b.op("Mul", axis.scale, size))
            offset = b.op("Mul", b.op("Div", size, _f(b, 2)), b.op("Sub", _f(b, 1), part))
            return b.op("Add", offset, half)
        case "tf_crop_and_resize":
            start, end, last = axis.start, axis.end, b.op("Sub", size, _f(b, 1))
            step = b.op("Div", b.op("Mul", b.op("Sub", end, start), last), between)
            run = b.op("Add", b.op("Mul", start, last), b.op("Mul", place, step))
            middle = b.op("Mul", b.op("Mul", b.op("Add", start, end), last), _f(b, 0.5))
            return _if_single(b, axis.out, b.op("Add", middle, place), run)
    return half


def _if_single(b: Builder, out: Value, one: Value, more: Value) -> Value:
    """`one` where the axis has a single element afterwards, whose place is 0, else `more`."""
    known = integers(out)
    if known is not None:
        return one if known == (1,) else more
    return b.op("Where", b.op("Equal", out, 1), one, more)


def _rounded(b: Builder, at: Value, axis: Axis, mode: str) -> Value:
    match mode:
        case "floor":
            return b.op("Floor", at)
        case "ceil":
            return b.op("Ceil", at)
        case "round_prefer_ceil":
            return b.op("Floor", b.op("Add", at, _f(b, 0.5)))
        case "simple":
            smaller = b.op("Less", axis.scale, _f(b, 1))
            return b.op("Where", smaller, b.op("Ceil", at), b.op("Floor", at))
    return b.op("Ceil", b.op("Sub", at, _f(b, 0.5)))


def _weights(b: Builder, at: Value, axis: Axis, last: Value, method: Method) -> Value:
    """The weights [out, in] of every element of the input in every one of the output.

    A kernel around each coordinate; what falls outside of the input counts for the element at
    its edge, or is excluded.
    """
    factor = axis.scale if method.antialias else _f(b, 1)
    if not method.narrows:
        factor = b.op("Min", factor, _f(b, 1))
    reach = b.op("Ceil", b.op("Div", _f(b, 2 if method.mode == "cubic" else 1), factor))
    margin = b.constant(0) if method.exclude_outside else b.op("Add", b.cast(reach, I64), 1)
    stop = b.op("Add", axis.size, margin)
    places = b.cast(b.op("Range", b.op("Neg", margin), stop, 1), F32)
    distance = b.op("Mul", b.op("Sub", places, b.unsqueeze(at, 1)), factor)
    kernel = _cubic(b, distance, method.cubic) if method.mode == "cubic" else _linear(b, distance)
    total = b.op("ReduceSum", kernel, [1], keepdims=True)
    if method.narrows:
        total = b.op("Max", total, _f(b, float(np.finfo(np.float32).tiny)))
    weights = b.op("Div", kernel, total)
    if method.exclude_outside:
        return weights
    inside = b.op("Max", b.op("Min", places, last), _f(b, 0))
    own = b.cast(b.op("Range", 0, axis.size, 1), F32)
    edges = b.cast(b.op("Equal", b.unsqueeze(inside, 1), own), F32)
    return b.op("MatMul", weights, edges)


def _linear(b: Builder, distance: Value) -> Value:
    return b.op("Max", b.op("Sub", _f(b, 1), b.op("Abs", distance)), _f(b, 0))


def _cubic(b: Builder, distance: Value, a: float) -> Value:
    """Keys' cubic convolution kernel with the coefficient `a`."""
    d = b.op("Abs", distance)
    # (a+2)d³ - (a+3)d² + 1 up to 1, ad³ - 5ad² + 8ad - 4a from there to 2.
    near = _polynomial(b, d, a + 2, -(a + 3), 0, 1)
    far = _polynomial(b, d, a, -5 * a, 8 * a, -4 * a)
    far = b.op("Where", b.op("Less", d, _f(b, 2)), far, _f(b, 0))
    return b.op("Where", b.op("LessOrEqual", d, _f(b, 1)), near, far)


def _polynomial(b: Builder, x: Value, *coefficients: float) -> Value:
    result = _f(b, coefficients[0])
    for coefficient in coefficients[1:]:
        result = b.op("Add", b.op("Mul", result, x), _f(b, coefficient))
    return result
