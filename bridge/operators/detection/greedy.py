"""Non-maximum suppression by any measure of what boxes overlap, where ONNX's operator has another.

It is a Loop through the classes of the images, in it one through their boxes, by falling score:
each that is left suppresses those after it that it overlaps.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.neutral.types import I64
from bridge.operators import Builder, Value
from bridge.operators.detection.suppression import NONE, of_classes
from bridge.operators.loops import along

Values = list[Value]
Overlaps = Callable[[Builder, Value, Value], Value]
"""Of boxes [numbers, n] with one [numbers] how much they overlap, [n]."""


def suppressed(
    b: Builder,
    boxes: Value,
    scores: Value,
    limit: Value,
    overlap: Value,
    least: Value,
    overlaps: Overlaps,
) -> Value:
    """The rows (image, class, box) of the boxes [images, boxes, numbers] that are left, as ONNX's
    NonMaxSuppression gives them: by scores [images, classes, boxes] above `least`, at most `limit`
    [1] of a class; those that overlap by more than `overlap` suppress each other."""
    image, label = of_classes(b, scores)

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        scores, image = parts
        boxes, overlap, least = fixed
        mine = b.op("Gather", boxes, image, 0)
        return [], [_left(b, mine, scores, overlap, least, overlaps)]

    flat = b.op("Flatten", scores, axis=2)
    _, (dense,) = along(b, step, [flat, image], [], [boxes, overlap, least])
    most = b.op("Min", limit, b.sizes(scores, 2))
    best, place = b.ops("TopK", 2, dense, most, axis=1)
    columns = [b.expand(b.unsqueeze(v, 1), b.op("Shape", place)) for v in (image, label)]
    indices = b.concat(1, *(b.reshape(v, -1, 1) for v in (*columns, place)))
    found = b.op("Greater", b.reshape(best, -1), NONE)
    return b.op("Compress", indices, found, axis=0)


def _left(
    b: Builder, boxes: Value, scores: Value, overlap: Value, least: Value, overlaps: Overlaps
) -> Value:
    """The scores [boxes] of those that are left of a class, else NONE."""
    none = b.constant(NONE)
    above = b.cast(b.op("Greater", scores, least), I64)
    count = b.op("ReduceSum", above, [0], keepdims=True)
    # One is there where none is above, so that the Loop is one of something.
    count = b.op("Min", b.op("Max", count, [1]), b.sizes(scores, 0))
    best, place = b.ops("TopK", 2, scores, count, axis=0)
    boxes = b.op("Gather", boxes, place, 0)
    rank = b.positions(best, 0)
    live = b.op("Greater", best, least)

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        number, box = parts
        (live,) = states
        boxes, rank, overlap = fixed
        hit = b.op("Greater", overlaps(b, boxes, box), overlap)
        hit = b.op("And", hit, b.op("Greater", rank, number))
        hit = b.op("And", hit, b.op("Gather", live, number, 0))
        return [b.op("And", live, b.op("Not", hit))], []

    by_number = b.transpose(boxes, 1, 0)
    (live,), _ = along(b, step, [rank, boxes], [live], [by_number, rank, overlap])
    nothing = b.expand(none, b.sizes(scores, 0))
    return b.op("ScatterND", nothing, b.unsqueeze(place, 1), b.op("Where", live, best, none))
