"""MelWeightMatrix: the weights from a spectrogram to a mel spectrogram."""

import math

from bridge.neutral.types import F32
from bridge.operators import Builder, Node, Result, Value, legalizes


@legalizes("MelWeightMatrix", target="ir")
def mel_weight_matrix(b: Builder, node: Node) -> Result:
    """MelWeightMatrix-17: triangles [spectrogram bins, mel bins] between the edges, evenly
    spaced in mel (the formula of the operator's reference implementation)."""
    inputs = [b.scalar(x) for x in node.operands]
    bins, length, rate = (b.as_i64(x) for x in inputs[:3])
    low, high = (_mel(b, b.cast(x, F32)) for x in inputs[3:])
    one, two = b.constant(1), b.constant(2)
    count = bins + two
    steps = b.cast(b.op("Range", 0, count, one), F32)
    hertz = _hertz(b, steps * ((high - low) / b.cast(count, F32)) + low)
    scale = b.cast(length + one, F32)
    edges = b.op("Floor", hertz * scale / b.cast(rate, F32))
    starts, ends = b.constant([1]), b.constant([-1])
    left = edges[:-2]
    centre = edges[starts:ends]
    right = edges[2 : 1 << 31]
    rows = b.op("Range", b.constant(0), length / two + one, one)
    row = b.unsqueeze(b.cast(rows, F32), 1)
    rising = _slope(b, row - left, centre - left, 1.0)
    falling = _slope(b, right - row, right - centre, 0.0)
    # The falling side includes the centre if the triangle has one.
    narrow = right.equal(centre)
    weights = b.where((row < centre) | narrow & row.equal(centre), rising, falling)
    inside = (row >= left) & (row <= right)
    return b.cast(b.where(inside, weights, 0.0), node.attributes["output_datatype"])


def _slope(b: Builder, distance: Value, width: Value, without: float) -> Value:
    """distance / width, or `without` if the width is 0."""
    none = width.equal(0.0)
    return b.where(none, b.constant(without), distance / b.where(none, 1.0, width))


def _mel(b: Builder, hertz: Value) -> Value:
    return b.op("Log", hertz / 700.0 + 1.0) * (2595 / math.log(10))


def _hertz(b: Builder, mel: Value) -> Value:
    return (b.op("Exp", mel * (math.log(10) / 2595)) - 1.0) * 700.0
