"""Non-maximum suppression with any measure of overlap and any rule for scores.

It serves operators with other measures or rules than ONNX's operator. A Loop has an iteration for
each box that a class may keep. The best box of each class of each image lowers the scores of
overlapping boxes.
"""

from collections.abc import Callable, Sequence

from bridge.neutral.types import I64
from bridge.operators import Builder, Value
from bridge.operators.bodies import Values, along
from bridge.operators.detection.suppression import LEAST, NONE, of_classes

Overlaps = Callable[[Builder, Value, Value], Value]
"""Returns the overlaps [classes, n] of boxes [numbers, classes, n] with one box of each class
[numbers, classes, 1]."""
Rescore = Callable[[Builder, Value, Value, Values, Values], tuple[Value, Values]]
"""(builder, scores, overlaps with the chosen boxes, states, fixed values) to the new scores
[classes, n] and the new states. The score of a suppressed box is NONE."""


def beyond(
    b: Builder, scores: Value, overlap: Value, states: Values, fixed: Values
) -> tuple[Value, Values]:
    """The rule that suppresses boxes with a larger overlap than the only fixed value."""
    return b.where(overlap > fixed[0], NONE, scores), states


def covered(b: Builder, boxes: list[Value], box: list[Value], pixel: float) -> tuple[Value, Value]:
    """The intersections and the unions of boxes with one box of each class, [1, classes, n]. Boxes
    (x1, y1, x2, y2, area) are split along axis 0. `pixel` is added to the distance of the corners
    for each size."""
    extents = []
    for low, high in ((0, 2), (1, 3)):
        extent = b.min(boxes[high], box[high]) - b.max(boxes[low], box[low])
        extent = extent + pixel if pixel else extent
        extents.append(b.max(extent, 0.0))
    shared = extents[0] * extents[1]
    return shared, boxes[4] + box[4] - shared


def over_union(b: Builder, boxes: Value, box: Value) -> Value:
    """The intersection over union of boxes (x1, y1, x2, y2, area); 0 if the union is 0."""
    theirs, chosen = (b.split(v, 0, 1, 1, 1, 1, 1) for v in (boxes, box))
    shared, together = covered(b, theirs, chosen, 0.0)
    return b.squeeze(shared / b.max(together, LEAST), 0)


def with_area(b: Builder, low: Value, high: Value) -> Value:
    """Boxes with their area [images, boxes, 5], from their corners [images, boxes, 2]."""
    area = b.op("ReduceProd", high - low, [2], keepdims=True)
    return b.concat(2, low, high, area)


def suppressed(
    b: Builder,
    boxes: Value,
    scores: Value,
    limit: Value,
    least: Value,
    overlaps: Overlaps,
    rule: Rescore,
    fixed: Sequence[Value],
    states: Sequence[Value] = (),
) -> tuple[Value, Value]:
    """The rows (image, class, box) of the selected boxes, as from ONNX's NonMaxSuppression, and
    their scores. The boxes are [images, boxes, numbers], and the scores [images, classes, boxes].
    Only scores above `least` count, and at most `limit` [1] boxes of a class are selected. `states`
    are the initial states of the rule."""
    image, label = of_classes(b, scores)
    flat = b.op("Flatten", scores, axis=2)
    above = flat > least
    flat = b.where(above, flat, NONE)
    most = b.op("ReduceSum", b.cast(above, I64), [1], keepdims=False)
    most = b.min(limit, b.op("ReduceMax", most, [0], keepdims=True))
    # At least one box is taken, so that the Loop does not work on an empty tensor.
    most = b.min(b.max(most, [1]), b.sizes(scores, 2))
    rounds = b.op("Range", b.constant(0), b.scalar(most), 1)
    by_box = b.op("Gather", boxes, image, 0)
    by_number = b.transpose(by_box, 2, 0, 1)

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        scores, *others = states
        first, by_box, by_number, *more = fixed
        # A factor below 1 raises a negative score. The initial score is therefore the limit.
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
    selected = best > NONE
    return b.op("Compress", indices, selected, axis=0), b.op("Compress", best, selected, axis=0)
