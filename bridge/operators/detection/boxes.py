"""Boxes with corners (x1, y1, x2, y2), the form in IR's proposals and detections."""

import math

from bridge.neutral.types import I64_MAX
from bridge.operators import Builder, Value

LARGEST_GROWTH = math.log(1000.0 / 16.0)
"""The largest exponent of e for the growth of a proposal."""


def moved(
    b: Builder,
    boxes: Value,
    moves: Value,
    axis: int,
    extra: float,
    inset: float,
    growth: float | None = None,
) -> tuple[Value, Value]:
    """Boxes after a move by fractions of their size and a growth by powers of e (at most `growth`).
    The result is their low and high corners along `axis`. `extra` is added to the distance of the
    corners for the width. `inset` is subtracted from the new high corner."""
    low, high = b.split(boxes, axis, 2, 2)
    shift, stretch = b.split(moves, axis, 2, 2)
    if growth is not None:
        stretch = b.min(stretch, growth)
    half = b.constant(0.5)
    size = high - low + extra
    centre = low + half * size + shift * size
    reach = half * (b.op("Exp", stretch) * size)
    far = centre + reach - inset
    return centre - reach, far


def least_sizes(b: Builder, info: Value, axis: int, size: float) -> Value:
    """The least width and height along `axis`: `size` times the scales of the image's `info`. Width
    and height may share one scale."""
    scales = b.cut(info, axis, 2, I64_MAX)
    return b.concat(axis, b.take(scales, axis, -1), b.take(scales, axis, 0)) * size


def first_rows(b: Builder, rows: Value, count: int) -> Value:
    """The first `count` rows, padded with rows of zeros."""
    rest = [b.sizes(rows, i) for i in range(1, rows.rank or 1)]
    zeros = b.op("Expand", b.like(0, rows), b.concat(0, b.constant([count]), *rest))
    return b.concat(0, rows, zeros)[:count]
