"""IR's ExperimentalDetectron operators, the parts of Mask R-CNN (operator set 6)."""

import math

import numpy as np

from bridge.neutral.types import F32, I32
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.detection.boxes import LARGEST_GROWTH, first_rows, moved
from bridge.operators.detection.pixels import pixels_suppressed


@legalizes("ExperimentalDetectronTopKROIs", target="onnx")
def topk_rois(b: Builder, node: Node) -> Result:
    """ExperimentalDetectronTopKROIs-6, which ONNX lacks: the rois with the best scores, padded to
    `max_rois`."""
    rois, scores = required(node, 0, 1)
    most = node.attributes["max_rois"]
    count = b.min(b.constant([most]), b.sizes(scores, 0))
    _, best = b.ops("TopK", 2, scores, count, axis=0)
    return first_rows(b, b.op("Gather", rois, best, 0), most)


@legalizes("ExperimentalDetectronPriorGridGenerator", target="onnx")
def prior_grid(b: Builder, node: Node) -> Result:
    """ExperimentalDetectronPriorGridGenerator-6: the priors around the centre of every cell,
    ordered by row, column and prior."""
    priors, features, image = required(node, 0, 1, 2)
    attributes = node.attributes
    places = []
    for axis, count, stride in ((3, "w", "stride_x"), (2, "h", "stride_y")):
        number = attributes[count]
        cells = b.constant([number]) if number else b.sizes(features, axis)
        step = b.constant([attributes[stride]])
        if not attributes[stride]:
            step = b.cast(b.sizes(image, axis), F32) / b.cast(cells, F32)
        place = (b.cast(b.op("Range", b.constant(0), b.scalar(cells), 1), F32) + 0.5) * step
        places.append(b.reshape(place, *((1, -1, 1, 1) if axis == 3 else (-1, 1, 1, 1))))
    selectors = [b.constant(np.array(s, np.float32)) for s in ([1, 0, 1, 0], [0, 1, 0, 1])]
    x, y = (p * s for p, s in zip(places, selectors, strict=True))
    grid = b.cast(x + y + b.cast(b.reshape(priors, 1, 1, -1, 4), F32), priors.element)
    return b.reshape(grid, -1, 4) if attributes["flatten"] else grid


@legalizes("ExperimentalDetectronGenerateProposalsSingleImage", target="onnx")
def generate_proposals(b: Builder, node: Node) -> Result:
    """ExperimentalDetectronGenerateProposalsSingleImage-6. The anchors are moved and clipped to the
    image, and the best ones are suppressed. Widths count the last pixel. Small boxes have score
    0."""
    info, anchors, deltas, scores = node.operands
    attributes = node.attributes
    count = b.sizes(scores, 0)
    grid = b.reshape(deltas, count, 4, b.sizes(deltas, 1), b.sizes(deltas, 2))
    moves = b.reshape(b.transpose(grid, 2, 3, 0, 1), -1, 4)
    flat = b.reshape(b.transpose(scores, 1, 2, 0), -1)
    corners = moved(b, anchors, moves, 1, 1.0, 1.0, LARGEST_GROWTH)
    zero, one = b.constant(0.0), b.constant(1.0)
    edge = b.concat(0, b.take(info, 0, 1), b.take(info, 0, 0)) - one
    low, high = (b.max(zero, b.min(v, edge)) for v in corners)
    small = b.op("ReduceMin", high - low + one, [1], keepdims=False) < attributes["min_size"]
    most = b.min(b.constant([attributes["pre_nms_count"]]), b.sizes(flat, 0))
    flat = b.where(small, zero, flat)
    best, place = b.ops("TopK", 2, flat, most, axis=0)
    boxes = b.op("Gather", b.concat(1, low, high), place, 0)
    # Scores may be negative. In the order of the boxes, all are above the threshold.
    order = b.cast(b.sizes(best, 0) - b.positions(best, 0), F32)
    kept = b.op(
        "NonMaxSuppression", b.unsqueeze(boxes, 0), b.unsqueeze(order, 0, 1),
        [attributes["post_nms_count"]], [attributes["nms_threshold"]],
        [0.0],
    )  # fmt: skip
    rows = b.reshape(b.take(kept, 1, 2), -1)
    results = (b.op("Gather", v, rows, 0) for v in (boxes, best))
    return [first_rows(b, v, attributes["post_nms_count"]) for v in results]


@legalizes("ExperimentalDetectronDetectionOutput", target="onnx")
def detection_output(b: Builder, node: Node) -> Result:
    """ExperimentalDetectronDetectionOutput-6: the boxes of each class, ordered by class. Widths
    count the last pixel. If there are too many boxes, only the best of all classes by score
    stay."""
    rois, deltas, scores, _ = node.operands
    attributes, most = node.attributes, node.attributes["max_detections_per_image"]
    classes = attributes["num_classes"]
    weights = b.constant(np.array(attributes["deltas_weights"], np.float32))
    moves = b.reshape(deltas, -1, classes, 4) / weights
    corners = moved(b, b.unsqueeze(rois, 1), moves, 2, 1.0, 1.0, attributes["max_delta_log_wh"])
    zero = b.constant(0.0)
    low, high = (b.max(zero, v) for v in corners)
    low, high = (b.transpose(v, 1, 0, 2)[1:classes] for v in (low, high))
    start, end = b.split(rois, 1, 2, 2)
    extent = b.op("ReduceMin", end - start, [1], keepdims=False)
    valid = extent > zero
    ranked = b.transpose(scores, 1, 0)[1:classes]
    ranked = b.unsqueeze(b.where(valid, ranked, zero), 1)
    kept = pixels_suppressed(
        b, low, high, ranked, attributes["post_nms_count"], attributes["nms_threshold"],
        attributes["score_threshold"],
    )  # fmt: skip
    selected = b.op("GatherND", ranked, kept)
    total = b.sizes(selected, 0)
    key = b.where(total > [most], -selected, b.cast(b.positions(selected, 0), F32))
    _, order = b.ops("TopK", 2, key, b.min([most], total), axis=0, largest=False)
    kept = b.op("Gather", kept, order, 0)
    boxes = b.op("GatherND", b.concat(2, low, high), b.take(kept, 1, 0, 2))
    label = b.reshape(b.take(kept, 1, 0), -1) + 1
    chosen = b.op("Gather", selected, order, 0)
    return [first_rows(b, v, most) for v in (boxes, b.cast(label, I32), chosen)]


@legalizes("ExperimentalDetectronROIFeatureExtractor", target="onnx")
def roi_features(b: Builder, node: Node) -> Result:
    """ExperimentalDetectronROIFeatureExtractor-6: samples every region from the level of the
    pyramid for its size. A region of 224 x 224 uses the third level, and a region of four times its
    area uses the next level. A region is at least 1 x 1 there, also if it is aligned."""
    rois, *levels = node.operands
    attributes, size = node.attributes, node.attributes["output_size"]
    low, high = b.split(rois, 1, 2, 2)
    area = b.op("ReduceProd", high - low, [1], keepdims=False)
    power = b.op("Log", b.op("Sqrt", b.max(area, 0.0)) / 224.0 + 1e-6) / math.log(2.0)
    level = b.op("Floor", power + 2.0)
    level = b.op("Clip", level, 0.0, float(len(levels) - 1))
    level = b.reshape(b.where(area > 0.0, level, -1.0), -1, 1, 1, 1)
    image = b.op("Expand", b.constant(0), b.sizes(rois, 0))
    mode = "half_pixel" if attributes["aligned"] else "output_half_pixel"
    result: Value = b.constant(0.0)
    for index, (features, step) in enumerate(
        zip(levels, attributes["pyramid_scales"], strict=True)
    ):
        wide = b.concat(1, low, b.max(high, low + float(step))) if attributes["aligned"] else rois
        y = b.op(
            "RoiAlign", features, wide, image, mode="avg", output_height=size, output_width=size,
            sampling_ratio=attributes["sampling_ratio"], spatial_scale=1.0 / step,
            coordinate_transformation_mode=mode,
        )  # fmt: skip
        result = b.where(level.equal(float(index)), y, result)
    return result, b.op("Identity", rois)
