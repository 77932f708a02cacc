"""QuantizeDequantize: floats to integers of 8 bits or fewer, and back, with one scale.

ONNX has QuantizeLinear and DequantizeLinear for it, IR has one FakeQuantize. OpenVINO itself makes
this FakeQuantize of the parts, and then takes it apart for its integer kernels.
"""

from collections.abc import Iterator

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.neutral.types import Element
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, required

_NEAR = 3
"""How many f32 numbers off the quotient of the limits the scale is sought."""


@legalizes("QuantizeDequantize", target="ir")
def quantize_dequantize_to_ir(b: Builder, node: Node) -> Result:
    """QuantizeDequantize as FakeQuantize-1. Its limits are the outermost levels."""
    x, scale, zero_point = required(node, 0, 1, 2)
    element, known = zero_point.element, (known_of(scale).array, known_of(zero_point).array)
    if element is None or known[0] is None or known[1] is None:
        raise Refused("its scale and its zero point must be known")
    rank = ranks(node, 0)[0]
    ends = limits(known[0], known[1], element)
    if ends[0].size > 1:
        after = rank - node.attributes["axis"] % rank - 1
        ends = [end.reshape(-1, *(1,) * after) for end in ends]
    else:
        ends = [end.reshape(()) for end in ends]
    low, high = (b.constant(end) for end in ends)
    lowest, highest = element.bounds
    return b.op("FakeQuantize", x, low, high, low, high, levels=highest - lowest + 1)


@legalizes("QuantizeDequantize", target="onnx")
def quantize_dequantize_to_onnx(b: Builder, node: Node) -> Result:
    """QuantizeDequantize as QuantizeLinear and DequantizeLinear."""
    x, *parameters = required(node, 0, 1, 2)
    axis, name, second = (node.attributes[name] for name in ("axis", "integers", "second"))
    integers = b.op("QuantizeLinear", x, *parameters, axis=axis)
    integers.names += [name] if name else []
    b.name = second or b.name
    return b.op("DequantizeLinear", integers, *parameters, axis=axis)


def limits(scale: np.ndarray, zero_point: np.ndarray, element: Element) -> list[np.ndarray]:
    """The floats of the least and the greatest integer, in f32."""
    shift = zero_point.astype(np.float32)
    return [np.asarray(scale * (np.float32(end) - shift), np.float32) for end in element.bounds]


def scale_of(start: np.ndarray, end: np.ndarray, low: int, high: int) -> np.ndarray | None:
    """The scale that gives exactly these limits, with the outermost levels less a whole zero point
    from `low` to `high`; None if there is none."""
    if not (end > start).all():
        return None
    scale = ((end.astype(np.float64) - start) / (high - low)).astype(np.float32)
    zero_point = np.round(low - start / scale)
    if (zero_point < low).any() or (zero_point > high).any():
        return None
    lowest, highest = np.float32(low) - zero_point, np.float32(high) - zero_point
    scales = np.zeros_like(scale)
    for candidate in _neighbours(scale):
        fits = (candidate * lowest == start) & (candidate * highest == end)
        scales = np.where((scales == 0) & fits, candidate, scales)
        if (scales > 0).all():
            return scales
    return None


def _neighbours(scale: np.ndarray) -> Iterator[np.ndarray]:
    """f32 numbers around these, the nearest first."""
    yield scale
    below = above = scale
    for _ in range(_NEAR):
        yield (below := np.nextafter(below, np.float32(0)))
        yield (above := np.nextafter(above, np.float32(np.inf)))


def axis_of(values: np.ndarray, data: Value) -> int | None:
    """The axis of scales or limits in data, from the end; 0 for one value, None for another form.
    In another form the data may be broadcast to the values, too."""
    wide = [axis - values.ndim for axis, size in enumerate(values.shape) if size > 1]
    if data.rank is None or values.ndim > data.rank or len(wide) > 1:
        return None
    if not wide:
        return 0
    return wide[0] if data.dims[wide[0]] == values.size else None
