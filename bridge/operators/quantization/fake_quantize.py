"""IR's FakeQuantize and FakeConvert, written with ONNX's operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.neutral.graph import operand_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ELEMENTS, F16, F32, I8, U8, Element
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.quantization.quantize_dequantize import axis_of, scale_of

WIDEST = 255
"""The most steps between the levels of 8 bits."""

ZERO_TOLERANCE = 1e-4
"""The largest distance, in steps, between 0 and a level that counts as 0. Limits in f32 cause this
distance."""


@legalizes("FakeQuantize", target="onnx")
def fake_quantize_to_onnx(b: Builder, node: Node) -> Result:
    """FakeQuantize-1: Clip, scale to 0 ... levels - 1, round half to even, scale to the output's
    range. With at most 256 levels and one of them 0, it becomes QuantizeLinear and
    DequantizeLinear, for which engines have integer kernels. Two equal limits are a threshold."""
    data, *limits = required(node, 0, 1, 2, 3, 4)
    element, steps = data.element, node.attributes["levels"] - 1
    known = [known_of(limit).array for limit in limits]
    x = b.cast(data, F32)
    if all(k is not None for k in known):
        il, ih, ol, oh = (np.asarray(k, np.float32) for k in known)
        made = _of_integers(b, data, (il, ih, ol, oh), steps)
        if made is None and np.array_equal(il, ol) and np.array_equal(ih, oh):
            made = _quantized(b, x, il, ih, steps)
        if made is not None:
            return b.cast(made, element)
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


def _of_integers(b: Builder, data: Value, known: Sequence[Any], steps: int) -> Value | None:
    """Scaled integers of 8 bits, which are the levels themselves. Old IRs hold weights so."""
    integers = operand_of(data, "Cast")
    if integers is None or integers.constant is None or integers.element not in (I8, U8):
        return None
    il, ih, ol, oh = known
    held = integers.constant.array()
    if (ih - il != steps).any() or (held < il.max()).any() or (held > ih.min()).any():
        return None
    low, high = integers.element.bounds
    if il.size > 1 or held.size == 0:
        return None
    levels = _levels(integers, ol, oh, steps, float(il.flat[0]), (low, high))
    return None if levels is None else levels.of(b, "DequantizeLinear", integers, integers.element)


def _quantized(b: Builder, x: Value, low: np.ndarray, high: np.ndarray, steps: int) -> Value | None:
    """`x` quantised to 8 bits and back. With fewer than 256 levels, the limits clip `x` first."""
    if not 0 < steps <= WIDEST:
        return None
    weights = x.behind("Cast").constant is not None
    symmetric = weights and steps < WIDEST and steps % 2 == 0 and np.array_equal(low, -high)
    element, first = (I8, -(steps // 2)) if symmetric else (U8, 0)
    levels = _levels(x, low, high, steps, first, (first, first + steps))
    if levels is None:
        return None
    if steps < WIDEST:
        x = b.min(b.max(x, b.constant(low)), b.constant(high))
    return levels.of(b, "QuantizeDequantize", x, element, apart=not weights)


@dataclass(frozen=True)
class _Levels:
    """The levels of a FakeQuantize as integers less a zero point, times a scale."""

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int

    def of(self, b: Builder, op: str, x: Value, element: Element, **more: bool) -> Value:
        """An operator of `x`, scale and zero point."""
        form = () if self.axis == 0 else (-1,)
        scale = b.constant(self.scale.reshape(form), F32)
        zero_point = b.constant(self.zero_point.reshape(form), element)
        return b.op(op, x, scale, zero_point, axis=self.axis or 1, **more)


def _levels(
    x: Value, start: np.ndarray, end: np.ndarray, steps: int, first: float, zeros: tuple[int, int]
) -> _Levels | None:
    """The levels from `start` to `end`, the first of them for the integer `first`. One level must
    be 0, for an integer of the range `zeros`. The limits are for all elements of `x`, or along one
    axis."""
    start, end = np.broadcast_arrays(start, end)
    axis = axis_of(start, x)
    if axis is None:
        return None
    if axis == 0:  # numpy computes with one number faster than with an array of it.
        start, end = start.flat[0], end.flat[0]
    exact = scale_of(start, end, int(first), int(first) + steps)
    scale = (end - start) / np.float32(steps) if exact is None else exact
    if not (scale > 0).all():
        return None
    zero_point = first - start / scale
    nearest = np.round(zero_point)
    if (abs(zero_point - nearest) > ZERO_TOLERANCE).any():
        return None
    fits = (nearest >= zeros[0]).all() and (nearest <= zeros[1]).all()
    return _Levels(scale, nearest, axis) if fits else None


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
