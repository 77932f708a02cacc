"""IR's NMSRotated."""

from collections.abc import Sequence

import numpy as np

from bridge.neutral.types import F32, I64_MAX
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.detection.greedy import beyond, suppressed
from bridge.operators.detection.suppression import by_score

_CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]], np.float32)[
    ..., None, None
]


@legalizes("NMSRotated", target="onnx")
def nms_rotated_to_onnx(b: Builder, node: Node) -> Result:
    """NMSRotated-13: NonMaxSuppression-9 with rotated boxes."""
    boxes, scores, limit, overlap, least = required(node, 0, 1, 2, 3, 4)
    sign = 1.0 if node.attributes["clockwise"] else -1.0
    boxes = b.cast(boxes, F32) * np.array([1, 1, 1, 1, sign], np.float32)
    rated = b.cast(scores, F32)
    overlap, least = (b.scalar(b.cast(v, F32)) for v in (overlap, least))
    most = b.reshape(b.as_i64(limit), 1)
    indices, best = suppressed(b, boxes, rated, most, least, _overlaps, beyond, [overlap])
    if node.attributes["sort_result_descending"]:
        best, indices = by_score(b, best, indices)
    rows = b.concat(1, b.cast(b.take(indices, 1, 0, 1), F32), b.unsqueeze(best, 1))
    element = node.attributes["output_type"]
    count = b.cast(b.sizes(best, 0), element)
    return b.cast(indices, element), rows, count


def _overlaps(b: Builder, boxes: Value, box: Value) -> Value:
    """The intersection over union [classes, n] of boxes with one box of each class; 0 if a box has
    no area. Boxes (centre, size, angle) are [5, classes, n] and [5, classes, 1]."""
    zero, half = b.constant(0.0), b.constant(0.5)
    x, y, width, height, angle = b.split(boxes, 0, 1, 1, 1, 1, 1)
    own_x, own_y, own_width, own_height, own_angle = b.split(box, 0, 1, 1, 1, 1, 1)
    # The corners [5, classes, n] in the frame of the one box, with the first corner again at the
    # end.
    u = width * _CORNERS[:, 0]
    v = height * _CORNERS[:, 1]
    turn = angle - own_angle
    corners = _turned(b, u, v, turn)
    centre = _turned(b, x - own_x, y - own_y, -own_angle)
    corner_x, corner_y = (c + d for c, d in zip(corners, centre, strict=True))
    reach = [v * half for v in (own_width, own_height)]
    shared = _within(b, corner_x, corner_y, *reach)
    # Rounding errors would give separate boxes an intersection above 0, and so above a threshold of
    # 0.
    halves = [v * half for v in (width, height)]
    seen = _turned(b, *centre, -turn)
    apart = _apart(b, centre, turn, reach, halves) | _apart(b, seen, turn, halves, reach)
    shared = b.where(b.squeeze(apart, 0), zero, shared)
    area = b.squeeze(width * height, 0)
    area_of_box = b.squeeze(own_width * own_height, 0)
    together = area + area_of_box - shared
    flat = b.min(area, area_of_box) <= zero
    return b.where(flat, zero, shared / b.where(flat, 1.0, together))


def _apart(
    b: Builder, between: Sequence[Value], turn: Value, own: Sequence[Value], other: Sequence[Value]
) -> Value:
    """Whether an axis of one box separates it from another box. `between` is the distance of the
    centres in the frame of the first box. The sizes are half the sizes of both boxes."""
    cosine, sine = (abs(b.op(f, turn)) for f in ("Cos", "Sin"))

    def is_far(axis: int) -> Value:
        reach = other[axis] * cosine + other[1 - axis] * sine + own[axis]
        return abs(between[axis]) >= reach

    return b.fold("Or", map(is_far, (0, 1)))


def _turned(b: Builder, x: Value, y: Value, angle: Value) -> tuple[Value, Value]:
    """Points rotated around the origin."""
    cosine, sine = b.op("Cos", angle), b.op("Sin", angle)
    return x * cosine - y * sine, x * sine + y * cosine


def _within(b: Builder, x: Value, y: Value, reach_x: Value, reach_y: Value) -> Value:
    """The areas [classes, n] of polygons, cut off at `reach_x` and `reach_y` from the origin. By
    Green's theorem, the area is an integral of x along the edges. The integral clips x at `reach_x`
    and skips the parts of the edges beyond `reach_y`. Corners are [edges + 1, classes, n], with the
    first corner again at the end."""
    (x_start, x_end), (y_start, y_end) = (
        [v[i : I64_MAX if i else -1] for i in (0, 1)] for v in (x, y)
    )

    zero, one = b.constant(0.0), b.constant(1.0)

    def clamped(v: Value, reach: Value) -> Value:
        return b.min(b.max(v, -reach), reach)

    def share(part: Value, whole: Value) -> Value:
        """An edge without a change in this coordinate may have any number, because its factor is
        0."""
        return part / b.where(whole.equal(zero), one, whole)

    low, high = clamped(y_start, reach_y), clamped(y_end, reach_y)
    slope = share(x_end - x_start, y_end - y_start)
    first, last = (x_start + (v - y_start) * slope for v in (low, high))
    change = last - first
    crossings = [
        b.op("Clip", share(edge - first, change), zero, one) for edge in (-reach_x, reach_x)
    ]
    # Between these fractions of an edge, x is linear or constant.
    shares = [zero, b.op("Min", *crossings), b.op("Max", *crossings), one]
    heights = [clamped(first + v * change, reach_x) for v in shares]

    def part(i: int) -> Value:
        both = heights[i] + heights[i + 1]
        return (shares[i + 1] - shares[i]) * both

    mean = b.fold("Add", map(part, range(3)))
    return abs(b.op("ReduceSum", mean * 0.5 * (high - low), [0], keepdims=False))
