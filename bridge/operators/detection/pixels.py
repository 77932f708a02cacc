"""Suppression of boxes that count their last pixel.

The sizes of such boxes and of their intersections are larger by one than the distance of their
corners. But separate boxes have no intersection, even at a distance below one pixel. ONNX's
NonMaxSuppression computes the same from boxes with high corners moved by one, unless boxes are
narrow. An If in the model tests this at inference.
"""

from bridge.neutral.types import I64
from bridge.operators import Builder, Value
from bridge.operators.bodies import either
from bridge.operators.detection.greedy import beyond, covered, suppressed


def pixels_suppressed(
    b: Builder, low: Value, high: Value, scores: Value, limit: int, overlap: float, least: float
) -> Value:
    """The rows (image, class, box) of the selected boxes, as from ONNX's NonMaxSuppression. The
    boxes have corners [images, boxes, 2]. Only scores [images, classes, boxes] above `least` count,
    and at most `limit` boxes of a class are selected. Boxes with a larger overlap than `overlap`
    suppress each other."""
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
    """Whether two boxes may be less than a pixel apart but overlap by more than `overlap` in ONNX's
    operator. The intersection of such boxes is narrower than the smaller width. Their widths are at
    most (1 + 1 / overlap) times the intersection. One box is therefore narrower than half of this
    factor."""
    low, high, scores = boxes
    extent = b.op("ReduceMin", high - low + 1.0, [2], keepdims=False)
    bound = max(0.5 + 0.5 / overlap, 1.0) * 1.001
    live = b.op("ReduceMax", scores, [1], keepdims=False)
    inside = (extent < bound) & (live > least)
    return b.op("ReduceSum", b.cast(inside, I64), [0, 1], keepdims=False) > 0


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
    """The intersection over union [classes, n] of boxes with one box of each class. Boxes (x1, y1,
    x2, y2, area) are [5, classes, n] and [5, classes, 1]. The result is 0 for separate boxes, even
    at a distance below the pixel that they count."""
    theirs, chosen = (b.split(v, 0, 1, 1, 1, 1, 1) for v in (boxes, box))
    overlap = b.op("Div", *covered(b, theirs, chosen, 1.0))
    # For boxes narrower than a pixel (with exchanged corners), this differs from their overlap.
    pairs = [
        (one[high], other[low])
        for one, other in ((theirs, chosen), (chosen, theirs))
        for low, high in ((0, 2), (1, 3))
    ]
    apart = b.op("Min", *(b.op("Sub", *pair) for pair in pairs)) < 0.0
    return b.squeeze(b.where(apart, 0.0, overlap), 0)
