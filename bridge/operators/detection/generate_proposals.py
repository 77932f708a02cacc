"""IR's GenerateProposals."""

from bridge.neutral.inference import first
from bridge.neutral.types import F32, I64
from bridge.operators import Builder, Node, Result, legalizes, required
from bridge.operators.detection.boxes import LARGEST_GROWTH, least_sizes, moved
from bridge.operators.detection.pixels import pixels_suppressed
from bridge.operators.detection.suppression import NONE


@legalizes("GenerateProposals", target="onnx")
def generate_proposals_to_onnx(b: Builder, node: Node) -> Result:
    """GenerateProposals-9. The anchors of each image are moved and clipped. The best of the large
    enough ones are suppressed. `nms_eta` has no effect in OpenVINO. If boxes are not normalised,
    widths count the last pixel."""
    info, anchors, deltas, scores = (b.cast(v, F32) for v in required(node, 0, 1, 2, 3))
    attributes, element = node.attributes, first(node).element
    pixel = 0.0 if attributes["normalized"] else 1.0
    grid = b.reshape(deltas, 0, -1, 4, b.sizes(deltas, 2), b.sizes(deltas, 3))
    moves = b.reshape(b.transpose(grid, 0, 3, 4, 1, 2), 0, -1, 4)
    priors = b.reshape(anchors, 1, -1, 4)
    corners = moved(b, priors, moves, 2, pixel, pixel, LARGEST_GROWTH)
    zero, last = b.constant(0.0), b.constant(pixel)
    edge = b.unsqueeze(b.take(info, 1, 1, 0) - last, 1)
    low, high = (b.max(zero, b.min(v, edge)) for v in corners)
    flat = b.reshape(b.transpose(scores, 0, 2, 3, 1), 0, -1)
    most = b.min(b.constant([attributes["pre_nms_count"]]), b.sizes(flat, 1))
    best, place = b.ops("TopK", 2, flat, most, axis=1)
    low, high = (b.op("GatherND", v, b.unsqueeze(place, 2), batch_dims=1) for v in (low, high))
    extent = high + last - low
    least = b.unsqueeze(least_sizes(b, info, 1, attributes["min_size"]), 1)
    small = b.op("ReduceMax", b.cast(extent < least, I64), [2], keepdims=False)
    rated = b.where(small > 0, NONE, best)
    rated, boxes = b.unsqueeze(rated, 1), b.concat(2, low, high)
    limits = attributes["post_nms_count"], attributes["nms_threshold"], NONE
    if attributes["normalized"]:
        kept = b.op("NonMaxSuppression", boxes, rated, *(b.constant([n]) for n in limits))
    else:
        kept = pixels_suppressed(b, low, high, rated, *limits)
    rows = b.take(kept, 1, 0, 2)
    results = [b.op("GatherND", v, rows) for v in (boxes, best)]
    image = b.take(kept, 1, 0).equal(b.positions(scores, 0))
    count = b.op("ReduceSum", b.cast(image, I64), [0], keepdims=False)
    return [*(b.cast(v, element) for v in results), b.cast(count, attributes["roi_num_type"])]
