"""EmbeddingBagOffsets, EmbeddingBagPacked, EmbeddingSegmentsSum, SegmentMax: sums of rows in
bags."""

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.neutral.types import I64
from bridge.operators import (
    Builder,
    Node,
    Refused,
    Value,
    legalizes,
    ranked,
    required,
)


def _rows(b: Builder, node: Node, weights: Value | None) -> Value:
    """The rows at the indices, multiplied by the weights."""
    (table, rank), indices = ranked(node), node.operand(1)
    rows = b.op("Gather", table, b.as_i64(indices), 0)
    if weights is None:
        return rows
    return rows * b.unsqueeze(weights, *range(-1, -rank, -1))


@legalizes("EmbeddingBagPacked", target="onnx")
def embedding_bag_packed_for_onnx(b: Builder, node: Node) -> Value:
    """EmbeddingBagPacked-15: every row of indices is a bag."""
    rows = _rows(b, node, node.input(2))
    reduce = "ReduceMean" if node.attributes["reduction"] == "mean" else "ReduceSum"
    return b.op(reduce, rows, b.constant([1]), keepdims=False)


@legalizes("EmbeddingBagOffsets", target="onnx")
def embedding_bag_offsets_for_onnx(b: Builder, node: Node) -> Value:
    """EmbeddingBagOffsets-15: a bag extends from its offset to the next offset."""
    table, indices, offsets = required(node, 0, 1, 2)
    started = b.as_i64(offsets) <= b.unsqueeze(b.positions(indices, 0), 1)
    bags = b.op("ReduceSum", b.op("Cast", started, to=I64), [1], keepdims=False)
    segments = bags - 1
    count = b.op("Shape", offsets)
    rows = _rows(b, node, node.input(4))
    mean = node.attributes["reduction"] == "mean"
    return _segment_sum(b, table, rows, segments, count, node.input(3), mean)


@legalizes("EmbeddingSegmentsSum", target="onnx")
def embedding_segments_sum_for_onnx(b: Builder, node: Node) -> Value:
    """EmbeddingSegmentsSum-3: each index has the number of its bag."""
    table, segments = required(node, 0, 2)
    segments = b.as_i64(segments)
    rows = _rows(b, node, node.input(5))
    count = _number(b, segments, node.input(3))
    return _segment_sum(b, table, rows, segments, count, node.input(4), False)


def _number(b: Builder, segments: Value, count: Value | None) -> Value:
    """The number of segments, 1-D. If it is not given, it is the number of the last segment plus
    1."""
    if count is not None:
        return b.reshape(b.as_i64(count), 1)
    return b.take(segments, 0, -1) + b.constant([1])


def _counts(b: Builder, segments: Value, count: Value, rank: int) -> Value:
    """The number of rows of each segment, i64 [count, 1, …] with rank `rank`."""
    zeros = b.op("Expand", [0], count)
    ones = b.op("Expand", b.constant([1]), b.op("Shape", segments))
    counts = b.op("ScatterND", zeros, b.unsqueeze(segments, 1), ones, reduction="add")
    return b.reshape(counts, -1, *[1] * (rank - 1))


def _filled(b: Builder, value: object, rows: Value, count: Value) -> Value:
    """A tensor [count, …] like `rows`, filled with one value."""
    rest = b.op("Shape", rows)[1 : 1 << 62]
    return b.op("Expand", b.like(value, rows), b.concat(0, count, rest))


def _segment_sum(
    b: Builder,
    table: Value,
    rows: Value,
    segments: Value,
    count: Value,
    default: Value | None,
    mean: bool,
) -> Value:
    """The sum (or mean) of the rows of each segment. An empty segment has the default row, or
    zeros."""
    zeros = _filled(b, 0, rows, count)
    total = b.op("ScatterND", zeros, b.unsqueeze(segments, 1), rows, reduction="add")
    known = known_of(default).ints
    if known == (-1,):
        default = None
    if not mean and default is None:
        return total
    counts = _counts(b, segments, count, len(table.dims))
    if mean:
        number = b.op("Cast", b.max(counts, 1), to=rows.element)
        total /= number
    if default is None:
        return total
    row = b.op("Gather", table, b.scalar(b.as_i64(default)), 0)
    if known is None:
        row = b.where(b.scalar(b.as_i64(default)) < 0, 0, row)
    return b.where(counts.equal(0), row, total)


@legalizes("SegmentMax", target="onnx")
def segment_max_for_onnx(b: Builder, node: Node) -> Value:
    """SegmentMax-16: the maximum of each segment. An empty segment has zero or the lowest value."""
    (data, rank), segments, count = ranked(node), node.operand(1), node.input(2)
    segments = b.as_i64(segments)
    number = _number(b, segments, count)
    element = data.known_element
    if not (element.is_float or element.is_integer):
        raise Refused(f"ONNX has no maximum of {element}")
    limits = np.finfo(element.dtype) if element.is_float else np.iinfo(element.dtype)
    start = _filled(b, -np.inf if element.is_float else limits.min, data, number)
    if count is not None:
        places = b.op("Squeeze", b.op("NonZero", segments < b.scalar(number)), [0])
        data = b.op("Gather", data, places, 0)
        segments = b.op("Gather", segments, places, 0)
    greatest = b.op("ScatterND", start, b.unsqueeze(segments, 1), data, reduction="max")
    counts = _counts(b, segments, number, rank)
    fill = b.like(0 if node.attributes["fill_mode"] == "ZERO" else limits.min, data)
    return b.where(counts.equal(0), fill, greatest)
