"""QuantizeLinear and DequantizeLinear, for which onnxruntime has integer kernels.

The first is a FakeQuantize to the levels of an integer type and a Cast to it. The second is a Cast
to f32, less a zero point, times a scale."""

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import F32, I8, I32, U8
from bridge.operators.quantization.quantize_dequantize import axis_of, scale_of
from bridge.passes.fuse import fuses
from bridge.passes.fuse.float_weights import stays_arithmetic
from bridge.passes.uses import Uses, zero_points

X, LIMITS = var(F32), [constant() for _ in range(4)]
FAKE = op("FakeQuantize", X, *LIMITS, levels=256)
QUANTIZED = op("Cast", FAKE)


@fuses(QUANTIZED, FAKE)
def quantize_linear(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Cast of a FakeQuantize whose limits follow from a scale, a zero point and the levels."""
    x, q, element = match[X], match[QUANTIZED], match.node(QUANTIZED).attributes["to"]
    if element not in (I8, U8):
        return None
    known = [known_of(match[limit]).array for limit in LIMITS]
    start, end, least, greatest = (np.asarray(k, np.float32) for k in known)
    low, high = element.bounds
    if not ((least == low).all() and (greatest == high).all()) or start.shape != end.shape:
        return None
    scale = scale_of(start, end, low, high)
    if scale is None:
        return None
    zero_point = np.round(low - start / scale)
    axis = axis_of(scale, x)
    if axis is None:
        return None
    form = () if axis == 0 else (-1,)
    parameters = [
        b.constant(known.reshape(form), type)
        for known, type in ((scale, F32), (zero_point, element))
    ]
    _share(parameters, uses.scales.get(q, []), uses)
    return b.op("QuantizeLinear", x, *parameters, **({"axis": axis} if axis else {}))


def _share(parameters: list[Value], others: list[Value], uses: Uses) -> None:
    """If scale and zero point are equal, the DequantizeLinear behind takes the same values."""
    if _are_equal(parameters, others):
        for own, other in zip(parameters, others, strict=True):
            uses.hand_over(other, own, inside=0)


INTEGERS, OFFSET, FACTOR = var(I8, U8, I32), var(), var()
WIDE = op("Cast", INTEGERS)
SHIFTED = (WIDE - OFFSET) | WIDE
SCALED = SHIFTED * FACTOR


@fuses(SCALED, WIDE)
def dequantize_linear(b: Builder, match: Found, uses: Uses) -> Value | None:
    """A scale, for all or along one axis, times integers less a zero point."""
    integers, value, scale = match[INTEGERS], match[SHIFTED], known_of(match[FACTOR]).reals
    element = integers.element
    if match[SCALED].element is not F32 or scale is None or element is None:
        return None
    if integers.constant is not None and stays_arithmetic(b, match[SCALED], uses):
        return None
    zero_point = zero_points(match.get(OFFSET), element, scale)
    axis = axis_of(scale, value)
    if axis is None or zero_point is None or integers.rank != value.rank:
        return None
    form = () if axis == 0 else (-1,)
    inputs = [integers, b.constant(scale.reshape(form), F32)]
    if element is not I32:
        inputs.append(b.constant(zero_point.reshape(form), element))
        uses.scales[integers] = inputs[1:]
    inputs[1:] = _of_quantization(integers, inputs[1:])
    return b.op("DequantizeLinear", *inputs, **({"axis": axis} if axis else {}))


def _of_quantization(integers: Value, parameters: list[Value]) -> list[Value]:
    """The scale and zero point of the QuantizeLinear that a record restored before, if they are
    equal to these; else these."""
    quantize = producer_of(integers, "QuantizeLinear")
    own = [v for v in quantize.inputs[1:] if v] if quantize else []
    return own if _are_equal(own, parameters) else parameters


def _are_equal(some: list[Value], others: list[Value]) -> bool:
    """Whether these are as many known values, and equal."""
    one, other = ([known_of(value).array for value in values] for values in (some, others))
    pairs = list(zip(one, other, strict=False))
    equal = all(a is not None and b is not None and np.array_equal(a, b) for a, b in pairs)
    return len(one) == len(other) and equal
