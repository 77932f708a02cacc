"""Non-maximum suppression by any measure of what boxes overlap, and by any rule of what that does
to scores, where ONNX's operator has others.

It is a Loop with an iteration for each box that a class may keep. The best box of each class of
each image lowers the scores of those that it overlaps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.neutral.types import I64
from bridge.operators import Builder, Value
from bridge.operators.detection.suppression import LEAST, NONE, of_classes
from bridge.operators.loops import Values, along

Overlaps = Callable[[Builder, Value, Value], Value]
"""Of boxes [numbers, classes, n] with one of each class [numbers, classes, 1] how much they
overlap, [classes, n]."""
Rule = Callable[[Builder, Value, Value, Values, Values], tuple[Value, Values]]
"""(builder, scores, overlaps with the chosen boxes, states, fixed values) to the new scores
[classes, n], NONE for what is suppressed, and the new states."""


def beyond(
    b: Builder, scores: Value, overlap: Value, states: Values, fixed: Values
) -> tuple[Value, Values]:
    """The rule by which boxes that overlap by more than the one fixed value are suppressed."""
    return b.where(overlap > fixed[0], NONE, scores), states


def covered(b: Builder, boxes: list[Value], box: list[Value], pixel: float) -> tuple[Value, Value]:
    """What boxes (x1, y1, x2, y2, area), split along axis 0, share with one of each class, and what
    both cover together, [1, classes, n]; `pixel` is how much longer they are than their corners are
    apart."""
    extents = []
    for low, high in ((0, 2), (1, 3)):
        extent = b.min(boxes[high], box[high]) - b.max(boxes[low], box[low])
        extent = extent + pixel if pixel else extent
        extents.append(b.max(extent, 0.0))
    shared = extents[0] * extents[1]
    return shared, boxes[4] + box[4] - shared


def over_union(b: Builder, boxes: Value, box: Value) -> Value:
    """Of boxes (x1, y1, x2, y2, area) what they share by what they cover together; 0 where that is
    nothing."""
    theirs, own = (b.split(v, 0, 1, 1, 1, 1, 1) for v in (boxes, box))
    shared, together = covered(b, theirs, own, 0.0)
    return b.squeeze(shared / b.max(together, LEAST), 0)


def with_area(b: Builder, low: Value, high: Value) -> Value:
    """Boxes (x1, y1, x2, y2, area) [images, boxes, 5] of their corners [images, boxes, 2]."""
    area = b.op("ReduceProd", high - low, [2], keepdims=True)
    return b.concat(2, low, high, area)


def suppressed(
    b: Builder,
    boxes: Value,
    scores: Value,
    limit: Value,
    least: Value,
    overlaps: Overlaps,
    rule: Rule,
    fixed: Sequence[Value],
    states: Sequence[Value] = (),
) -> tuple[Value, Value]:
    """The rows (image, class, box) of the boxes [images, boxes, numbers] that are left, as ONNX's
    NonMaxSuppression gives them, and their scores: by scores [images, classes, boxes] above
    `least`, at most `limit` [1] of a class. The rule begins with `states`."""
    image, label = of_classes(b, scores)
    flat = b.op("Flatten", scores, axis=2)
    above = flat > least
    flat = b.where(above, flat, NONE)
    most = b.op("ReduceSum", b.cast(above, I64), [1], keepdims=False)
    most = b.min(limit, b.op("ReduceMax", most, [0], keepdims=True))
    # One is there where none is above, so that the Loop is one of something.
    most = b.min(b.max(most, [1]), b.sizes(scores, 2))
    rounds = b.op("Range", b.constant(0), b.scalar(most), 1)
    by_box = b.op("Gather", boxes, image, 0)
    by_number = b.transpose(by_box, 2, 0, 1)

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        scores, *others = states
        first, by_box, by_number, *more = fixed
        # Of scores below 0, which rise where they fall, the first one counts.
        place = b.op("ArgMax", b.min(scores, first), axis=1, keepdims=True)
        best = b.op("GatherElements", scores, place, axis=1)
        box = b.transpose(b.op("GatherND", by_box, place, batch_dims=1), 1, 0)
        overlap = overlaps(b, by_number, b.unsqueeze(box, 2))
        chosen = b.positions(scores, 1).equal(place)
        scores, others = rule(b, b.where(chosen, NONE, scores), overlap, others, more)
        return [scores, *others], [b.squeeze(v, 1) for v in (place, best)]

    known = [flat, by_box, by_number, *fixed]
    _, stacked = along(b, step, [rounds], [flat, *states], known)
    place, best = (b.cut(b.transpose(v, 1, 0), 1, 0, limit) for v in stacked)
    columns = [b.expand(b.unsqueeze(v, 1), b.op("Shape", place)) for v in (image, label)]
    indices = b.concat(1, *(b.reshape(v, -1, 1) for v in (*columns, place)))
    best = b.reshape(best, -1)
    found = best > NONE
    return b.op("Compress", indices, found, axis=0), b.op("Compress", best, found, axis=0)
