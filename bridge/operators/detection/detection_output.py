"""IR's DetectionOutput: decodes boxes, suppresses overlapping ones, keeps the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, F32, I64, TensorType, Type
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required
from bridge.operators.detection.suppression import NONE, kept_scores


def _check(node: Node) -> None:
    attributes = node.attributes
    if node.input(3) is not None or node.input(4) is not None:
        raise Refused("predictions of a second stage (its inputs 3 and 4) are not supported")
    if not attributes["share_location"] or attributes["decrease_label_id"]:
        raise Refused("share_location = false and decrease_label_id = true are not supported")
    if attributes["keep_top_k"][0] < 1:
        raise Refused("keep_top_k must be a positive number")


@legalizes("DetectionOutput", target="onnx")
def detection_output_to_onnx(b: Builder, node: Node) -> Result:
    """Rows of (image, label, score, x1, y1, x2, y2): by image, by label, by falling score; a row
    of image -1 ends them and zeros follow (DetectionOutput-8)."""
    _check(node)
    logits, predictions, proposals = required(node, 0, 1, 2)
    attributes, keep = node.attributes, node.attributes["keep_top_k"][0]
    boxes = _decoded(b, logits, proposals, attributes)
    priors, images = b.sizes(boxes, 1), b.sizes(boxes, 0)
    scores = b.transpose(b.reshape(predictions, images, priors, -1), 0, 2, 1)
    classes = b.sizes(scores, 1)
    limits = ("background_label_id", "top_k", "nms_threshold", "confidence_threshold")
    left = kept_scores(b, boxes, scores, *(attributes[name] for name in limits))
    dense = b.reshape(left, images, -1)
    count = b.op("Min", b.constant([keep]), b.sizes(dense, 1))
    best, places = b.ops("TopK", 2, dense, count, axis=1, largest=True, sorted=True)
    labels, prior = b.op("Div", places, priors), b.op("Mod", places, priors)
    found = b.op("Greater", best, b.constant(NONE))
    rank = b.op("Range", b.constant(0), b.scalar(count), b.constant(1))
    key = b.op("Add", b.op("Mul", labels, count), rank)
    key = b.op("Where", found, key, b.op("Add", b.op("Mul", classes, count), rank))
    _, order = b.ops("TopK", 2, key, count, axis=1, largest=False, sorted=True)
    label, score, prior, kept = (
        b.op("GatherElements", v, order, axis=1) for v in (labels, best, prior, b.cast(found, I64))
    )
    chosen = b.op("GatherND", boxes, b.unsqueeze(prior, 2), batch_dims=1)
    if attributes["clip_after_nms"]:
        chosen = b.op("Clip", chosen, b.constant(0.0), b.constant(1.0))
    image = b.op("Range", b.constant(0), b.scalar(images), b.constant(1))
    image = b.op("Expand", b.unsqueeze(image, 1), b.op("Shape", kept))
    columns = [b.unsqueeze(b.cast(v, F32), 2) for v in (image, label, score)]
    rows = b.reshape(b.concat(2, *columns, chosen), -1, 7)
    rows = b.op("Compress", rows, b.reshape(b.op("Greater", kept, b.constant(0)), -1), axis=0)
    total = b.op("Mul", images, b.constant([keep]))
    end = b.constant(np.array([[-1, 0, 0, 0, 0, 0, 0]], np.float32))
    zeros = b.op("Expand", b.constant(0.0), b.concat(0, total, b.constant([7])))
    rows = b.cut(b.concat(0, rows, end, zeros), 0, 0, total)
    return b.unsqueeze(rows, 0, 1)


def _decoded(b: Builder, logits: Value, proposals: Value, attributes: dict[str, Any]) -> Value:
    """Boxes [images, priors, 4] of corners."""
    images = b.sizes(logits, 0)
    moves = b.reshape(logits, images, -1, 4)
    batch, count = b.sizes(proposals, 0), b.sizes(moves, 1)
    priors = b.reshape(b.cut(proposals, 1, 0, 1), batch, count, -1)
    if not attributes["normalized"]:
        extent = [attributes["input_width"], attributes["input_height"]] * 2
        priors = b.op("Div", b.cut(priors, 2, 1, 5), b.constant(np.array(extent, np.float32)))
    if not attributes["variance_encoded_in_target"]:
        # Four for each prior, without gaps, where priors have five numbers too.
        variance = b.reshape(b.cut(proposals, 1, 1, 2), batch, -1)
        variance = b.cut(variance, 1, 0, b.op("Mul", count, b.constant([4])))
        moves = b.op("Mul", moves, b.reshape(variance, batch, -1, 4))
    if attributes["code_type"].rpartition(".")[2].upper() == "CENTER_SIZE":
        low, high = b.split(priors, 2, 2, 2)
        size = b.op("Sub", high, low)
        centre = b.op("Mul", b.op("Add", low, high), b.constant(0.5))
        shift, growth = b.split(moves, 2, 2, 2)
        centre = b.op("Add", b.op("Mul", shift, size), centre)
        half = b.op("Mul", b.op("Mul", b.op("Exp", growth), size), b.constant(0.5))
        boxes = b.concat(2, b.op("Sub", centre, half), b.op("Add", centre, half))
    else:
        boxes = b.op("Add", priors, moves)
    if attributes["clip_before_nms"]:
        boxes = b.op("Clip", boxes, b.constant(0.0), b.constant(1.0))
    return boxes


@infers("DetectionOutput")
def infer_detection_output(node: Node) -> list[Type]:
    """DetectionOutput: [1, 1, images * keep_top_k, 7]."""
    keep = node.attributes["keep_top_k"][0]
    shape = first(node).shape
    images = shape[0] if shape else ANY
    rows = images * keep if isinstance(images, int) and keep > 0 else ANY
    return [TensorType(first(node).element, (1, 1, rows, 7))]
