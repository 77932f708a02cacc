"""IR's MatrixNms."""

from typing import Any

from bridge.neutral.inference import first
from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.bodies import Values, along
from bridge.operators.detection.multiclass_nms import selected
from bridge.operators.detection.suppression import NONE, of_classes


@legalizes("MatrixNms", target="onnx")
def matrix_nms_to_onnx(b: Builder, node: Node) -> Result:
    """MatrixNms-8: the overlap with better boxes of the same class lowers a score. A Loop visits
    the classes of the images. As in OpenVINO, sorting across images sorts by class alone."""
    boxes, scores = (b.cast(v, F32) for v in required(node, 0, 1))
    attributes = dict(node.attributes)
    if not attributes["sort_result_across_batch"]:
        attributes["sort_result_type"] = "none"
    label = b.unsqueeze(b.positions(scores, 1), 1)
    if attributes["background_class"] >= 0:
        scores = b.where(label.equal(attributes["background_class"]), NONE, scores)
    image, _ = of_classes(b, scores)

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        scores, image = parts
        return [], [_decayed(b, b.op("Gather", fixed[0], image, 0), scores, attributes)]

    _, (dense,) = along(b, step, [b.op("Flatten", scores, axis=2), image], [], [boxes])
    rows, places, counts = selected(b, boxes, dense, attributes)
    return b.cast(rows, first(node).element), places, counts


def _decayed(b: Builder, boxes: Value, scores: Value, attributes: dict[str, Any]) -> Value:
    """The lowered scores [boxes] of one class of an image, or NONE."""
    zero, one, none = b.constant(0.0), b.constant(1.0), b.constant(NONE)
    selected = scores > attributes["score_threshold"]
    scores = b.where(selected, scores, none)
    count = b.op("ReduceSum", b.cast(selected, I64), [0], keepdims=True)
    if attributes["nms_top_k"] >= 0:
        count = b.min(count, [attributes["nms_top_k"]])
    # At least one box is taken, so that the maximum of each row is not the maximum of an empty
    # tensor.
    count = b.min(b.max(count, [1]), b.sizes(scores, 0))
    best, place = b.ops("TopK", 2, scores, count, axis=0)
    overlap = _overlaps(b, b.op("Gather", boxes, place, 0), attributes["normalized"])
    rank = b.positions(best, 0)
    better = rank < b.unsqueeze(rank, 1)
    overlap = b.where(better, overlap, zero)
    largest = b.op("ReduceMax", overlap, [1], keepdims=False)
    if attributes["decay_function"] == "linear":
        rest = one - largest + 1e-10
        factor = (one - overlap) / rest
    else:
        power = largest * largest - overlap * overlap
        factor = b.op("Exp", power * attributes["gaussian_sigma"])
    factor = b.where(better, factor, one)
    rated = best * b.op("ReduceMin", factor, [1], keepdims=False)
    rated = b.where(rated > attributes["post_threshold"], rated, none)
    unrated = b.expand(none, b.sizes(scores, 0))
    return b.op("ScatterND", unrated, b.unsqueeze(place, 1), rated)


def _overlaps(b: Builder, boxes: Value, normalized: bool) -> Value:
    """The intersection over union [n, n] of each pair of boxes [n, 4]; 0 if the union is 0. Boxes
    in pixels count their last pixel."""
    low, high = b.split(boxes, 1, 2, 2)
    pixel, zero = b.constant(0.0 if normalized else 1.0), b.constant(0.0)
    extent = high - low
    valid = b.op("ReduceMin", extent, [1], keepdims=True)
    area = b.op("ReduceProd", extent + pixel, [1], keepdims=True)
    area = b.where(valid < zero, zero, area)
    lows, highs = [[b.unsqueeze(v, axis) for axis in (0, 1)] for v in (low, high)]
    shared = b.op("Min", *highs) - b.op("Max", *lows)
    # For a box with exchanged corners, this differs from `shared`.
    reach = b.op("Min", *(highs[i] - lows[1 - i] for i in (0, 1)))
    apart = b.op("ReduceMin", reach, [2], keepdims=False) < zero
    shared = b.where(apart, zero, b.op("ReduceProd", shared + pixel, [2], keepdims=False))
    together = area + b.transpose(area, 1, 0) - shared
    return b.where(shared.equal(zero), zero, shared / together)
