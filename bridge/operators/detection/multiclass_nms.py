"""IR's MulticlassNms."""

from functools import partial
from typing import Any

from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.bodies import Values
from bridge.operators.detection.greedy import over_union, suppressed, with_area
from bridge.operators.detection.suppression import NONE, just_below, kept_scores


@legalizes("MulticlassNms", target="onnx")
def multiclass_nms_to_onnx(b: Builder, node: Node) -> Result:
    """MulticlassNms-9: rows of (class, score, x1, y1, x2, y2), the indices of their boxes, and the
    number of rows of each image. The indices count through all images. With `roisnum`, each class
    has its own boxes [classes, boxes, 4], and `roisnum` is the number of boxes of each image."""
    boxes, scores = required(node, 0, 1)
    attributes, counts = node.attributes, node.input(2)
    # A score equal to its threshold counts, and an overlap equal to its threshold suppresses.
    overlap, least = (just_below(attributes[f"{of}_threshold"]) for of in ("iou", "score"))
    limits = attributes["nms_top_k"], overlap, max(least, NONE)
    adaptive = partial(_adaptively, attributes) if attributes["nms_eta"] < 1 else None
    background, covered = attributes["background_class"], boxes
    if not attributes["normalized"]:  # Sizes count the last pixel.
        covered = boxes + b.constant([0.0, 0.0, 1.0, 1.0])
    if counts is None:
        dense = kept_scores(b, covered, scores, background, *limits, adaptive)
        return selected(b, boxes, dense, attributes)
    rated = _by_image(b, scores, counts, background)
    dense = kept_scores(b, covered, rated, -1, *limits, adaptive)
    return selected(b, boxes, b.transpose(dense, 1, 0, 2), attributes, of_classes=True)


def _adaptively(
    attributes: dict[str, Any], b: Builder, low: Value, high: Value, scores: Value
) -> Value:
    """The rows (image, class, box) after suppression with a falling threshold. Each selected box
    multiplies a threshold above 0.5 by `nms_eta`. The lower threshold also applies to earlier
    overlaps."""

    def rule(
        b: Builder, scores: Value, overlap: Value, states: Values, fixed: Values
    ) -> tuple[Value, Values]:
        largest, limit = b.max(states[0], overlap), states[1]
        lowered = limit * attributes["nms_eta"]
        limit = b.where(limit > 0.5, lowered, limit)
        return b.where(largest < limit, scores, NONE), [largest, limit]

    no_overlap = b.op("Expand", 0.0, b.op("Shape", b.op("Flatten", scores, axis=2)))
    none = b.op("ReduceSum", no_overlap, [1], keepdims=True)
    limit = none + attributes["iou_threshold"]
    least = b.constant(max(just_below(attributes["score_threshold"]), NONE))
    boxes = with_area(b, low, high)
    rows, _ = suppressed(
        b, boxes, scores, b.sizes(scores, 2), least, over_union, rule, [], [no_overlap, limit]
    )
    return rows


def _by_image(b: Builder, scores: Value, counts: Value, background: int) -> Value:
    """The scores [classes, images, boxes], from the scores [classes, boxes] of all images. `counts`
    is the number of boxes of each image. The score is NONE for a box of another image and for the
    class `background`."""
    axis = b.constant(0)
    ends = b.op("CumSum", b.as_i64(counts), axis)
    place = b.positions(scores, 1)
    behind = place < b.unsqueeze(ends, 1)
    ahead = place < b.unsqueeze(ends - b.as_i64(counts), 1)
    mine = behind & ~ahead
    label = b.unsqueeze(b.positions(scores, 0), 1, 2)
    shown = ~label.equal(background)
    return b.where(b.unsqueeze(mine, 0) & shown, b.unsqueeze(scores, 1), NONE)


def selected(
    b: Builder, boxes: Value, dense: Value, attributes: dict[str, Any], of_classes: bool = False
) -> list[Value]:
    """The outputs: the rows of the best boxes of each image. The scores are [images, classes,
    boxes], or NONE. The boxes [images, boxes, 4] are by image, or by class with `of_classes`."""
    element = attributes["output_type"]
    images, count = b.sizes(dense if of_classes else boxes, 0), b.sizes(boxes, 1)
    dense = b.reshape(dense, images, -1)
    rows = b.sizes(dense, 1)
    if attributes["keep_top_k"] >= 0:
        rows = b.min([attributes["keep_top_k"]], rows)
    score, place = b.ops("TopK", 2, dense, rows, axis=1)
    width = b.max(count, [1])  # without boxes, 0 would divide
    label, box = place / width, place % width
    image = b.op("Range", b.constant(0), b.scalar(images), 1)
    owner = label if of_classes else b.unsqueeze(image, 1)
    number = box + owner * count
    found = score > NONE
    per_image = b.op("ReduceSum", b.cast(found, I64), [1], keepdims=False)
    columns = [b.reshape(v, -1) for v in (label, score, number, found)]
    key = _key(b, columns, rows, attributes)
    if key is not None:
        total = b.sizes(columns[0], 0)
        _, order = b.ops("TopK", 2, key, total, axis=0, largest=False)
        columns = [b.op("Gather", v, order, 0) for v in columns]
    label, score, number = (b.op("Compress", v, columns[3], axis=0) for v in columns[:3])
    corners = b.op("Gather", b.reshape(boxes, -1, 4), number, 0)
    heads = [b.unsqueeze(b.cast(v, F32), 1) for v in (label, score)]
    if of_classes:  # OpenVINO numbers the boxes of all classes together.
        classes = b.sizes(boxes, 0)
        number = number % count * classes + label
    places = b.cast(b.unsqueeze(number, 1), element)
    return [b.concat(1, *heads, corners), places, b.cast(per_image, element)]


def _key(b: Builder, columns: list[Value], rows: Value, attributes: dict[str, Any]) -> Value | None:
    """The sort key of rows in order of image and falling score; None if they stay in this order."""
    label, score, _, _ = columns
    across = attributes["sort_result_across_batch"]
    if attributes["sort_result_type"] != "classid":
        return -score if across and attributes["sort_result_type"] == "score" else None
    place = b.positions(label, 0)
    total = b.sizes(label, 0) + b.constant([1])
    first = place / b.max(rows, [1])
    by_label = label * total + place
    if across:
        return by_label
    most = b.op("ReduceMax", label, [0], keepdims=True) + b.constant([1])
    return by_label + first * (most * total)
