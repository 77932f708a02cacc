"""Boxes of corners (x1, y1, x2, y2), as the proposals and detections of IR have them."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.operators.idioms import concat, cut, sizes, split, squeeze


def moved(
    b: Builder,
    boxes: Value,
    moves: Value,
    axis: int,
    extra: float,
    inset: float,
    growth: float | None = None,
) -> tuple[Value, Value]:
    """Boxes moved by fractions of their size and stretched by powers of e (at most `growth`): their
    low and high corners along `axis`. `extra` is what a box is wider than its corners are apart,
    `inset` what is taken off the new high corner."""
    low, high = split(b, boxes, axis, 2, 2)
    shift, stretch = split(b, moves, axis, 2, 2)
    if growth is not None:
        stretch = b.op("Min", stretch, b.constant(growth))
    half = b.constant(0.5)
    size = b.op("Add", b.op("Sub", high, low), b.constant(extra))
    centre = b.op("Add", b.op("Add", low, b.op("Mul", half, size)), b.op("Mul", shift, size))
    reach = b.op("Mul", half, b.op("Mul", b.op("Exp", stretch), size))
    far = b.op("Sub", b.op("Add", centre, reach), b.constant(inset))
    return b.op("Sub", centre, reach), far


def first_rows(b: Builder, rows: Value, count: int) -> Value:
    """The first `count` rows, with rows of zeros where there are fewer."""
    rest = [sizes(b, rows, i) for i in range(1, rows.rank or 1)]
    zeros = b.op("Expand", b.like(0, rows), concat(b, 0, b.constant([count]), *rest))
    return cut(b, concat(b, 0, rows, zeros), 0, 0, count)


def with_areas(b: Builder, low: Value, high: Value) -> Value:
    """Boxes (x1, y1, x2, y2, area) of their corners [..., boxes, 2]; they count the last pixel."""
    extent = b.op("Add", b.op("Sub", high, low), b.constant(1.0))
    area = b.op("ReduceProd", extent, b.constant([-1]), keepdims=True)
    return concat(b, -1, low, high, area)


def pixels_shared(b: Builder, boxes: Value, box: Value) -> Value:
    """Of boxes `with_areas` [5, n] with one [5] what they share by what they cover together, [n]:
    0 where they lie apart, be it by less than the pixel that they count."""
    one, zero = b.constant(1.0), b.constant(0.0)
    theirs, own = (split(b, v, 0, 1, 1, 1, 1, 1) for v in (boxes, box))
    extents, reaches = [], []
    for low, high in ((0, 2), (1, 3)):
        start, end = b.op("Max", theirs[low], own[low]), b.op("Min", theirs[high], own[high])
        extents.append(b.op("Max", b.op("Add", b.op("Sub", end, start), one), zero))
        # Of boxes narrower than a pixel, which are inside out, this is not the same.
        reaches += [b.op("Sub", theirs[high], own[low]), b.op("Sub", own[high], theirs[low])]
    shared = b.op("Mul", *extents)
    overlap = b.op("Div", shared, b.op("Sub", b.op("Add", theirs[4], own[4]), shared))
    apart = b.op("Less", b.op("Min", *reaches), zero)
    return squeeze(b, b.op("Where", apart, zero, overlap), 0)
