"""IR's Proposal."""

from typing import Any

import numpy as np

from bridge.neutral.types import F32
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes
from bridge.operators.detection.boxes import first_rows, least_sizes, moved
from bridge.operators.detection.pixels import pixels_suppressed
from bridge.operators.detection.suppression import NONE


def anchors_of(attributes: dict[str, Any]) -> np.ndarray:
    """The anchors [ratios * scales, 4] of one cell (Proposal-4)."""
    other = attributes["framework"] == "tensorflow"
    extra = 0.0 if other else 1.0
    base, boxes = attributes["base_size"], []
    centre = 0.5 * (base - extra) - (0.5 * base if other else 0.0)
    for ratio in attributes["ratio"]:
        width = np.sqrt(np.float32(base * base) / np.float32(ratio))
        height = width * np.float32(ratio)
        if not other:
            width = np.floor(width + 0.5)
            height = np.floor(width * np.float32(ratio) + 0.5)
        for scale in attributes["scale"]:
            half = [0.5 * (size * np.float32(scale) - extra) for size in (width, height)]
            boxes.append([centre - half[0], centre - half[1], centre + half[0], centre + half[1]])
    return np.array(boxes, np.float32)


@legalizes("Proposal", target="ir")
def proposal_with_scores(b: Builder, node: Node) -> Result:
    """Proposal-1 returns only the boxes."""
    return None if len(node.outputs) == 2 else b.ops("Proposal", 2, *node.inputs, **node.attributes)


@legalizes("Proposal", target="onnx")
def proposal_to_onnx(b: Builder, node: Node) -> Result:
    """Proposal-4: rows of (image, x1, y1, x2, y2) in order of falling score. A row of image -1 ends
    them, and zeros follow. For TensorFlow, x and y are exchanged."""
    scores, deltas, info = node.operands
    attributes, most = node.attributes, node.attributes["post_nms_topn"]
    if scores.shape is None or scores.shape[0] != 1 or attributes["framework"] not in (
        "", "tensorflow",
    ):  # fmt: skip
        raise Refused(
            "more than one image, and other frameworks than TensorFlow, are not supported"
        )
    other = attributes["framework"] == "tensorflow"
    extra = 0.0 if other else 1.0
    anchors = anchors_of(attributes)
    count = len(anchors)
    height, width = (b.take(b.reshape(info, -1), 0, i) for i in ((1, 0) if other else (0, 1)))
    image = b.concat(0, width, height)
    boxes = _grid(b, scores, anchors, attributes["feat_stride"], other)
    zero = b.constant(0.0)
    if other:
        boxes = b.max(zero, b.min(boxes, b.concat(0, image, image)))
    moves = b.reshape(deltas, count, 4, b.sizes(deltas, 2), b.sizes(deltas, 3))
    moves = b.reshape(b.transpose(moves, 2, 3, 0, 1), -1, 4)
    scales = [attributes["box_coordinate_scale"]] * 2 + [attributes["box_size_scale"]] * 2
    moves /= np.array(scales, np.float32)
    low, high = moved(b, boxes, moves, 1, extra, 0.0)
    if attributes["clip_before_nms"]:
        last = image - extra
        low, high = (b.max(zero, b.min(v, last)) for v in (low, high))
    extent = high - low + extra
    flat = b.reshape(b.transpose(b.cut(scores, 1, count, 2 * count), 0, 2, 3, 1), -1)
    least = least_sizes(b, b.reshape(info, -1), 0, float(attributes["min_size"]))
    small = b.op("ReduceMax", b.cast(extent < least, F32), [1], keepdims=False)
    flat = b.where(small > zero, zero, flat)
    number = b.min(b.constant([attributes["pre_nms_topn"]]), b.sizes(flat, 0))
    best, place = b.ops("TopK", 2, flat, number, axis=0)
    low, high = (b.op("Gather", v, place, 0) for v in (low, high))
    rated, limits = b.unsqueeze(best, 0, 1), (most, attributes["nms_thresh"], NONE)
    if other:
        boxes = b.unsqueeze(b.concat(1, low, high), 0)
        kept = b.op("NonMaxSuppression", boxes, rated, *(b.constant([n]) for n in limits))
    else:
        corners = [b.unsqueeze(v, 0) for v in (low, high)]
        kept = pixels_suppressed(b, corners[0], corners[1], rated, *limits)
    rows = b.reshape(b.take(kept, 1, 2), -1)
    corners = [b.op("Gather", v, rows, 0) for v in (low, high)]
    if attributes["clip_after_nms"]:
        corners = [b.max(zero, b.min(v, image)) for v in corners]
    if attributes["normalize"]:
        corners = [v / image for v in corners]
    numbers = b.split(corners[0], 1, 1, 1)[0] * zero
    end = b.constant(np.array([[-1, 0, 0, 0, 0]], np.float32))
    rois = b.concat(0, b.concat(1, numbers, *corners), end)
    chosen = b.op("Gather", best, rows, 0)
    return [first_rows(b, rois, most), first_rows(b, chosen, most)][: len(node.outputs)]


def _grid(b: Builder, scores: Value, anchors: np.ndarray, stride: int, other: bool) -> Value:
    """The anchors of every cell, ordered by row, column and anchor."""
    rows = b.reshape(b.positions(scores, 2) * stride, -1, 1, 1, 1)
    columns = b.reshape(b.positions(scores, 3) * stride, 1, -1, 1, 1)
    x, y = (rows, columns) if other else (columns, rows)
    x = b.cast(x, F32) * np.array([1, 0, 1, 0], np.float32)
    return b.reshape(x + b.cast(y, F32) * np.array([0, 1, 0, 1], np.float32) + anchors, -1, 4)
