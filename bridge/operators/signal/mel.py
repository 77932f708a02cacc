"""MelWeightMatrix: the weights by which a spectrogram becomes a mel spectrogram."""

from __future__ import annotations

import math

from bridge.neutral.types import F32
from bridge.operators import Builder, Node, Result, Value, legalizes


@legalizes("MelWeightMatrix", target="ir")
def mel_weight_matrix(b: Builder, node: Node) -> Result:
    """MelWeightMatrix-17: triangles [spectrogram bins, mel bins] between the edges, evenly
    spaced in mel (the formula of the operator's reference implementation)."""
    inputs = [b.scalar(x) for x in node.inputs if x is not None]
    bins, length, rate = (b.as_i64(x) for x in inputs[:3])
    low, high = (_mel(b, b.cast(x, F32)) for x in inputs[3:])
    one, two = b.constant(1), b.constant(2)
    count = b.op("Add", bins, two)
    steps = b.cast(b.op("Range", 0, count, one), F32)
    step = b.op("Div", b.op("Sub", high, low), b.cast(count, F32))
    hertz = _hertz(b, b.op("Add", b.op("Mul", steps, step), low))
    scale = b.cast(b.op("Add", length, one), F32)
    edges = b.op("Floor", b.op("Div", b.op("Mul", hertz, scale), b.cast(rate, F32)))
    starts, ends = b.constant([1]), b.constant([-1])
    left = b.cut(edges, 0, 0, b.constant([-2]))
    centre = b.cut(edges, 0, starts, ends)
    right = b.cut(edges, 0, b.constant([2]), b.constant([1 << 31]))
    rows = b.op("Range", b.constant(0), b.op("Add", b.op("Div", length, two), one), one)
    row = b.unsqueeze(b.cast(rows, F32), 1)
    rising = _slope(b, b.op("Sub", row, left), b.op("Sub", centre, left), 1.0)
    falling = _slope(b, b.op("Sub", right, row), b.op("Sub", right, centre), 0.0)
    # The falling side takes the centre, where it has one.
    narrow = b.op("Equal", right, centre)
    before = b.op("Or", b.op("Less", row, centre), b.op("And", narrow, b.op("Equal", row, centre)))
    weights = b.op("Where", before, rising, falling)
    inside = b.op("And", b.op("GreaterOrEqual", row, left), b.op("LessOrEqual", row, right))
    return b.cast(b.op("Where", inside, weights, 0.0), node.attributes["output_datatype"])


def _slope(b: Builder, distance: Value, width: Value, without: float) -> Value:
    """distance / width, `without` where the width is 0."""
    none = b.op("Equal", width, 0.0)
    otherwise = b.constant(without)
    slope = b.op("Div", distance, b.op("Where", none, 1.0, width))
    return b.op("Where", none, otherwise, slope)


def _mel(b: Builder, hertz: Value) -> Value:
    inner = b.op("Add", b.op("Div", hertz, 700.0), 1.0)
    return b.op("Mul", b.op("Log", inner), 2595 / math.log(10))


def _hertz(b: Builder, mel: Value) -> Value:
    power = b.op("Exp", b.op("Mul", mel, math.log(10) / 2595))
    return b.op("Mul", b.op("Sub", power, 1.0), 700.0)
