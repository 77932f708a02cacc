"""IR's FakeQuantize and FakeConvert, written with ONNX's operators."""

from __future__ import annotations

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ELEMENTS, F16, F32
from bridge.operators import Builder, Node, Result, Value, legalizes, required

ZERO_TOLERANCE = 1e-4
"""The largest distance, in steps, between 0 and a level that counts as 0. Limits in f32 cause this
distance."""


@legalizes("FakeQuantize", target="onnx")
def fake_quantize_to_onnx(b: Builder, node: Node) -> Result:
    """FakeQuantize-1: Clip, scale to 0 ... levels - 1, round half to even, scale to the output's
    range. With 256 levels and one of them 0, it becomes QuantizeLinear and DequantizeLinear, for
    which engines have integer kernels. Two equal limits are a threshold."""
    data, *limits = required(node, 0, 1, 2, 3, 4)
    element, steps = data.element, node.attributes["levels"] - 1
    known = [known_of(limit).array for limit in limits]
    x = b.cast(data, F32)
    if all(k is not None for k in known):
        il, ih, ol, oh = (np.asarray(k, np.float32) for k in known)
        if steps == 255 and np.array_equal(il, ol) and np.array_equal(ih, oh):
            quantized = _quantized(b, x, il, ih)
            if quantized is not None:
                return b.cast(quantized, element)
        span, usual = ih - il, bool((ih > il).all())
        scale = np.where(span == 0, 0, steps / np.where(span == 0, 1, span)).astype(np.float32)
        low, high = b.constant(np.minimum(il, ih)), b.constant(np.maximum(il, ih))
        into = b.constant(scale), b.constant(np.asarray(-il * scale, np.float32))
        out = b.constant(np.asarray((oh - ol) / np.float32(steps), np.float32)), b.constant(ol)
        top = b.constant(oh)
    else:
        usual = False
        i, j, k, m = (b.cast(limit, F32) for limit in limits)
        low, high = b.min(i, j), b.max(i, j)
        count = b.constant(float(steps))
        scale_value = count / (j - i)
        into = scale_value, -(i * scale_value)
        out, top = ((m - k) / count, k), m
    y = b.op("Round", b.min(b.max(x, low), high) * into[0] + into[1])
    y = y * out[0] + out[1]
    if not usual:
        y = b.op("Where", x <= low, out[1], y)
        y = b.op("Where", x > high, top, y)
    return b.cast(y, element)


def _quantized(b: Builder, x: Value, low: np.ndarray, high: np.ndarray) -> Value | None:
    """`x` quantised to 8 bits and back. One level must be 0, and the limits must be for all
    elements or along one axis."""
    low, high = np.broadcast_arrays(low, high)
    scale = (high - low) / np.float32(255)
    if not (scale > 0).all():
        return None
    zero_point = -low / scale
    nearest = np.round(zero_point)
    if (abs(zero_point - nearest) > ZERO_TOLERANCE).any() or (
        (nearest < 0) | (nearest > 255)
    ).any():
        return None
    wide = [axis for axis, size in enumerate(low.shape) if size > 1]
    if len(wide) > 1:
        return None
    axis = wide[0] - low.ndim if wide else 1
    shape = (-1,) if wide else ()
    scales = b.constant(np.asarray(scale, np.float32).reshape(shape))
    zeros = b.constant(nearest.astype(np.uint8).reshape(shape))
    integers = b.op("QuantizeLinear", x, scales, zeros, axis=axis)
    return b.op("DequantizeLinear", integers, scales, zeros, axis=axis)


@legalizes("FakeConvert", target="onnx")
def fake_convert_to_onnx(b: Builder, node: Node) -> Result:
    """FakeConvert-13: converts to an 8-bit float and back, between a scale and a shift. OpenVINO
    rounds to f16 as an intermediate step."""
    data, scale = required(node, 0, 1)
    shift = node.input(2)
    narrow = ELEMENTS[{"f8e4m3": "f8e4m3fn"}.get(node.attributes["destination_type"], "f8e5m2")]
    x = data * scale
    x = x if shift is None else x - shift
    x = b.op("Cast", b.op("Cast", b.cast(x, F16), to=narrow), to=data.element)
    return b.plus(x, shift) / scale
