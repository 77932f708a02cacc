"""IR's DetectionOutput: decodes boxes, suppresses overlapping ones, keeps the best."""

from typing import Any

import numpy as np

from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.detection.suppression import NONE, kept_scores


@legalizes("DetectionOutput", target="onnx")
def detection_output_to_onnx(b: Builder, node: Node) -> Result:
    """DetectionOutput-8. The rows (image, label, score, x1, y1, x2, y2) are sorted by image, by
    label and by falling score. A row of image -1 ends them, and zeros follow. A second stage moves
    the priors, and it assigns priors without an object to the background."""
    logits, predictions, proposals = required(node, 0, 1, 2)
    attributes = node.attributes
    boxes = _decoded(b, logits, proposals, node.input(4), attributes)
    priors, images = b.sizes(boxes, -2), b.sizes(boxes, 0)
    scores = b.reshape(predictions, images, priors, -1)
    if node.input(3) is not None:
        scores = _of_objects(b, scores, node.input(3), attributes)
    scores = b.transpose(scores, 0, 2, 1)
    classes = b.sizes(scores, 1)
    keep = b.constant([attributes["keep_top_k"][0]])
    if attributes["keep_top_k"][0] < 1:
        most = b.constant([attributes["top_k"]]) if attributes["top_k"] > 0 else priors
        keep = most * classes
    dense = b.reshape(_suppressed(b, boxes, scores, attributes), images, -1)
    count = b.min(keep, b.sizes(dense, 1))
    best, places = b.ops("TopK", 2, dense, count, axis=1)
    labels = places / priors
    prior = places % priors if attributes["share_location"] else places
    selected = best > NONE
    rank = b.op("Range", b.constant(0), b.scalar(count), 1)
    key = b.where(selected, labels * count + rank, classes * count + rank)
    _, order = b.ops("TopK", 2, key, count, axis=1, largest=False)
    label, score, prior, kept = (
        b.op("GatherElements", v, order, axis=1)
        for v in (labels, best, prior, b.cast(selected, I64))
    )
    if not attributes["share_location"]:
        boxes = b.reshape(boxes, images, -1, 4)
    chosen = b.op("GatherND", boxes, b.unsqueeze(prior, 2), batch_dims=1)
    if attributes["clip_after_nms"]:
        chosen = b.op("Clip", chosen, 0.0, 1.0)
    image = b.op("Range", b.constant(0), b.scalar(images), 1)
    image = b.op("Expand", b.unsqueeze(image, 1), b.op("Shape", kept))
    if attributes["decrease_label_id"]:
        label -= 1
    columns = [b.unsqueeze(b.cast(v, F32), 2) for v in (image, label, score)]
    rows = b.reshape(b.concat(2, *columns, chosen), -1, 7)
    rows = b.op("Compress", rows, b.reshape(kept > 0, -1), axis=0)
    total = images * keep
    end = b.constant(np.array([[-1, 0, 0, 0, 0, 0, 0]], np.float32))
    zeros = b.op("Expand", b.constant(0.0), b.concat(0, total, b.constant([7])))
    rows = b.concat(0, rows, end, zeros)[:total]
    return b.unsqueeze(rows, 0, 1)


def _suppressed(b: Builder, boxes: Value, scores: Value, attributes: dict[str, Any]) -> Value:
    """The scores [images, classes, priors] after suppression. If each class has its own boxes, a
    class is suppressed like an image."""
    background = attributes["background_label_id"]
    limits = [attributes[name] for name in ("top_k", "nms_threshold", "confidence_threshold")]
    if attributes["decrease_label_id"]:
        scores, background = _of_best_class(b, scores, *limits), -1
        limits = [-1, attributes["nms_threshold"], NONE]
    if attributes["share_location"]:
        return kept_scores(b, boxes, scores, background, *limits)
    scores = b.where(b.unsqueeze(b.positions(scores, 1).equal(background), 1), NONE, scores)
    priors = b.sizes(scores, 2)
    each = b.reshape(boxes, -1, priors, 4), b.reshape(scores, -1, 1, priors)
    return kept_scores(b, *each, -1, *limits)


def _of_best_class(b: Builder, scores: Value, best: int, overlap: float, least: float) -> Value:
    """The scores [images, classes, priors] of the best class of each prior, without the first
    class, the background. Only scores of at least `least` and among the `best` scores of the image
    stay. All others are NONE."""
    none = b.constant(NONE)
    named = b.unsqueeze(b.positions(scores, 1) > 0, 1)
    scores = b.where(named, scores, none)
    highest = b.op("ReduceMax", scores, [1], keepdims=True)
    scores = b.where(scores.equal(highest) & (scores >= least), scores, none)
    if best > 0:
        flat = b.op("Flatten", scores, axis=1)
        top, _ = b.ops("TopK", 2, flat, b.min(b.constant([best]), b.sizes(flat, 1)), axis=1)
        scores = b.where(scores < b.unsqueeze(b.take(top, 1, -1), 2), none, scores)
    return scores


def _of_objects(
    b: Builder, scores: Value, objects: Value | None, attributes: dict[str, Any]
) -> Value:
    """The scores [images, priors, classes] of priors with an object in the first stage. The other
    priors are background."""
    assert objects is not None
    sure = b.take(b.reshape(objects, b.sizes(scores, 0), -1, 2), 2, 1)
    none = sure < attributes["objectness_score"]
    background = b.positions(scores, 2).equal(attributes["background_label_id"])
    return b.where(none, b.cast(background, F32), scores)


def _decoded(
    b: Builder, logits: Value, proposals: Value, first: Value | None, attributes: dict[str, Any]
) -> Value:
    """Boxes with corners: [images, priors, 4] or [images, classes, priors, 4]."""
    images, batch = b.sizes(logits, 0), b.sizes(proposals, 0)
    stages = [logits] if first is None else [first, logits]
    if attributes["share_location"]:
        stages = [b.reshape(stage, images, -1, 4) for stage in stages]
        count = b.sizes(stages[-1], 1)
    else:
        numbers = b.constant([4 if attributes["normalized"] else 5])
        count = b.sizes(proposals, 2) / numbers
        each = [b.reshape(stage, images, count, -1, 4) for stage in stages]
        stages = [b.transpose(stage, 0, 2, 1, 3) for stage in each]
    priors = b.reshape(b.cut(proposals, 1, 0, 1), batch, count, -1)
    if not attributes["normalized"]:
        extent = [attributes["input_width"], attributes["input_height"]] * 2
        priors = b.cut(priors, 2, 1, 5) / np.array(extent, np.float32)
    variance = None
    if not attributes["variance_encoded_in_target"]:
        # Each prior has four variances without gaps, even if priors have five numbers.
        variance = b.reshape(b.cut(proposals, 1, 1, 2), batch, -1)
        variance = b.cut(variance, 1, 0, count * [4])
        variance = b.reshape(variance, batch, -1, 4)
    if not attributes["share_location"]:
        priors = b.unsqueeze(priors, 1)
        variance = None if variance is None else b.unsqueeze(variance, 1)
    for stage in stages:
        steps = stage if variance is None else stage * variance
        priors = _moved(b, priors, steps, attributes["code_type"])
        if attributes["clip_before_nms"]:
            priors = b.op("Clip", priors, 0.0, 1.0)
    return priors


def _moved(b: Builder, priors: Value, moves: Value, code: str) -> Value:
    """Boxes after moves in the form `code`. The corners are on their last axis."""
    axis = 2 if moves.rank == 3 else -1
    if code.rpartition(".")[2].upper() != "CENTER_SIZE":
        return priors + moves
    low, high = b.split(priors, axis, 2, 2)
    size = high - low
    centre = (low + high) * 0.5
    shift, growth = b.split(moves, axis, 2, 2)
    centre = shift * size + centre
    half = b.op("Exp", growth) * size * 0.5
    return b.concat(axis, centre - half, centre + half)
