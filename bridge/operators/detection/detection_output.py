"""IR's DetectionOutput: decodes boxes, suppresses overlapping ones, keeps the best."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, F32, I64, TensorType, Type
from bridge.operators import Refused, Result, legalizes
from bridge.operators.builder_helpers import (
    cast,
    concat,
    cut,
    reshape,
    scalar,
    sizes,
    split,
    transpose,
    unsqueeze,
)
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
    logits, predictions, proposals = node.inputs[:3]
    assert logits is not None and predictions is not None and proposals is not None
    attributes, keep = node.attributes, node.attributes["keep_top_k"][0]
    boxes = _decoded(b, logits, proposals, attributes)
    priors, images = sizes(b, boxes, 1), sizes(b, boxes, 0)
    scores = transpose(b, reshape(b, predictions, images, priors, -1), 0, 2, 1)
    classes = sizes(b, scores, 1)
    dense = reshape(
        b,
        kept_scores(
            b,
            boxes,
            scores,
            attributes["background_label_id"],
            attributes["top_k"],
            attributes["nms_threshold"],
            attributes["confidence_threshold"],
        ),
        images,
        -1,
    )
    count = b.op("Min", b.constant([keep]), sizes(b, dense, 1))
    best, places = b.ops("TopK", 2, dense, count, axis=1, largest=True, sorted=True)
    labels, prior = b.op("Div", places, priors), b.op("Mod", places, priors)
    found = b.op("Greater", best, b.constant(NONE))
    rank = b.op("Range", b.constant(0), scalar(b, count), b.constant(1))
    key = b.op("Add", b.op("Mul", labels, count), rank)
    key = b.op("Where", found, key, b.op("Add", b.op("Mul", classes, count), rank))
    _, order = b.ops("TopK", 2, key, count, axis=1, largest=False, sorted=True)
    label, score, prior, kept = (
        b.op("GatherElements", v, order, axis=1) for v in (labels, best, prior, cast(b, found, I64))
    )
    chosen = b.op("GatherND", boxes, unsqueeze(b, prior, 2), batch_dims=1)
    if attributes["clip_after_nms"]:
        chosen = b.op("Clip", chosen, b.constant(0.0), b.constant(1.0))
    image = b.op("Range", b.constant(0), scalar(b, images), b.constant(1))
    image = b.op("Expand", unsqueeze(b, image, 1), b.op("Shape", kept))
    columns = [unsqueeze(b, cast(b, v, F32), 2) for v in (image, label, score)]
    rows = reshape(b, concat(b, 2, *columns, chosen), -1, 7)
    rows = b.op("Compress", rows, reshape(b, b.op("Greater", kept, b.constant(0)), -1), axis=0)
    total = b.op("Mul", images, b.constant([keep]))
    end = b.constant(np.array([[-1, 0, 0, 0, 0, 0, 0]], np.float32))
    zeros = b.op("Expand", b.constant(0.0), concat(b, 0, total, b.constant([7])))
    rows = cut(b, concat(b, 0, rows, end, zeros), 0, 0, total)
    return unsqueeze(b, rows, 0, 1)


def _decoded(b: Builder, logits: Value, proposals: Value, attributes: dict[str, Any]) -> Value:
    """Boxes [images, priors, 4] of corners."""
    images = sizes(b, logits, 0)
    moves = reshape(b, logits, images, -1, 4)
    batch, count = sizes(b, proposals, 0), sizes(b, moves, 1)
    priors = reshape(b, cut(b, proposals, 1, 0, 1), batch, count, -1)
    if not attributes["normalized"]:
        extent = [attributes["input_width"], attributes["input_height"]] * 2
        priors = b.op("Div", cut(b, priors, 2, 1, 5), b.constant(np.array(extent, np.float32)))
    if not attributes["variance_encoded_in_target"]:
        # Four for each prior, without gaps, where priors have five numbers too.
        variance = reshape(b, cut(b, proposals, 1, 1, 2), batch, -1)
        variance = cut(b, variance, 1, 0, b.op("Mul", count, b.constant([4])))
        moves = b.op("Mul", moves, reshape(b, variance, batch, -1, 4))
    if attributes["code_type"].rpartition(".")[2].upper() == "CENTER_SIZE":
        low, high = split(b, priors, 2, 2, 2)
        size = b.op("Sub", high, low)
        centre = b.op("Mul", b.op("Add", low, high), b.constant(0.5))
        shift, growth = split(b, moves, 2, 2, 2)
        centre = b.op("Add", b.op("Mul", shift, size), centre)
        half = b.op("Mul", b.op("Mul", b.op("Exp", growth), size), b.constant(0.5))
        boxes = concat(b, 2, b.op("Sub", centre, half), b.op("Add", centre, half))
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
