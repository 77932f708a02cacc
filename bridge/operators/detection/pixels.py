"""Suppression of boxes that count their last pixel.

Their sizes and what they share are larger by one than their corners are apart, but those that lie
apart share nothing, be it by less than a pixel. ONNX's NonMaxSuppression says the same of boxes
whose high corners are moved by one, unless they are narrow. Which it is is seen when the model
runs: an If.
"""

from __future__ import annotations

from bridge.neutral.types import I64
from bridge.operators import Builder, Value
from bridge.operators.branches import either
from bridge.operators.detection.greedy import beyond, covered, suppressed


def pixels_suppressed(
    b: Builder, low: Value, high: Value, scores: Value, limit: int, overlap: float, least: float
) -> Value:
    """The rows (image, class, box) left of boxes with corners [images, boxes, 2], as ONNX's
    NonMaxSuppression gives them: by scores [images, classes, boxes] above `least`, at most `limit`
    of a class; those that overlap by more than `overlap` suppress each other."""
    outer = [low, high, scores]
    if overlap <= 0:
        return _exactly(b, outer, limit, overlap, least)
    (rows,) = either(
        b,
        _narrow(b, outer, overlap, least),
        outer,
        lambda inner, boxes: [_exactly(inner, boxes, limit, overlap, least)],
        lambda inner, boxes: [_by_operator(inner, boxes, limit, overlap, least)],
        ("narrow", "wide"),
    )
    return rows


def _narrow(b: Builder, boxes: list[Value], overlap: float, least: float) -> Value:
    """Whether there may be two boxes less than a pixel apart of which the operator says that they
    overlap by more than `overlap`. Then they share less than the smaller width, and their widths
    are at most (1 + 1 / overlap) times what they share: one is narrower than half of that."""
    low, high, scores = boxes
    extent = b.op("ReduceMin", high - low + 1.0, [2], keepdims=False)
    bound = max(0.5 + 0.5 / overlap, 1.0) * 1.001
    live = b.op("ReduceMax", scores, [1], keepdims=False)
    found = (extent < bound) & (live > least)
    return b.op("ReduceSum", b.cast(found, I64), [0, 1], keepdims=False) > 0


def _by_operator(b: Builder, boxes: list[Value], limit: int, overlap: float, least: float) -> Value:
    low, high, scores = boxes
    wide = b.concat(2, low, high + 1.0)
    limits = (b.constant([n]) for n in (limit, overlap, least))
    return b.op("NonMaxSuppression", wide, scores, *limits)


def _exactly(b: Builder, boxes: list[Value], limit: int, overlap: float, least: float) -> Value:
    low, high, scores = boxes
    area = b.op("ReduceProd", high - low + 1.0, [2], keepdims=True)
    limits, corners = (b.constant([limit]), b.constant(least)), b.concat(2, low, high, area)
    rows, _ = suppressed(b, corners, scores, *limits, _shared, beyond, [b.constant(overlap)])
    return rows


def _shared(b: Builder, boxes: Value, box: Value) -> Value:
    """Of boxes (x1, y1, x2, y2, area) [5, classes, n] with one of each class [5, classes, 1] what
    they share by what they cover together, [classes, n]: 0 where they lie apart, be it by less than
    the pixel that they count."""
    theirs, own = (b.split(v, 0, 1, 1, 1, 1, 1) for v in (boxes, box))
    overlap = b.op("Div", *covered(b, theirs, own, 1.0))
    # Of boxes narrower than a pixel, which are inside out, this is not the same.
    pairs = [
        (one[high], other[low])
        for one, other in ((theirs, own), (own, theirs))
        for low, high in ((0, 2), (1, 3))
    ]
    apart = b.op("Min", *(b.op("Sub", *pair) for pair in pairs)) < 0.0
    return b.squeeze(b.where(apart, 0.0, overlap), 0)
