"""Non-maximum suppression.

ONNX suppresses a box with a larger overlap than the threshold, but OpenVINO also suppresses an
equal overlap. The conversion therefore moves the threshold to the next number. IR also returns
scores, and it may sort all boxes by score.
"""

import numpy as np

from bridge.neutral.graph import operand_of, producer_of
from bridge.neutral.inference import constraints as must, first, infers
from bridge.neutral.inference.constraints import contradiction, equal_sizes
from bridge.neutral.inference.dims import at_most, dim_product
from bridge.neutral.inference.known import as_dim, known_of
from bridge.neutral.types import ANY, F32, I64, Dim, TensorType, meet_dim
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads, required
from bridge.operators.bodies import Values
from bridge.operators.detection.greedy import over_union, suppressed, with_area
from bridge.operators.detection.suppression import LEAST, NONE, by_score
from bridge.operators.guarding import SafeInputs, Unsafe, guards, is_one_size

_ULP = np.float32(2.0**-23)


@legalizes("NonMaxSuppression", target="ir")
def non_max_suppression_to_ir(b: Builder, node: Node) -> Result:
    """NonMaxSuppression (10 to 11) as NonMaxSuppression-9, which keeps a box only if its overlap is
    below the threshold."""
    boxes, scores = required(node, 0, 1)
    if boxes.rank == 3 and boxes.dims[2] != 4:
        # IR requires four known coordinates of a box.
        boxes = b.reshape(boxes, 0, 0, 4)
    limit, overlap, least = node.input(2), node.input(3), node.input(4)
    overlap = b.constant(LEAST) if overlap is None else _neighbour(b, b.scalar(overlap), np.inf)
    lowest = b.constant(float(np.finfo(np.float32).min)) if least is None else b.scalar(least)
    most = b.constant(0) if limit is None else b.scalar(limit)
    indices, _, _ = b.ops(
        "ir::NonMaxSuppression", 3, boxes, scores, most, overlap, lowest,
        box_encoding="center" if node.attributes["center_point_box"] else "corner",
        sort_result_descending=False, output_type=I64,
    )  # fmt: skip
    return indices


def _neighbour(b: Builder, value: Value, limit: float) -> Value:
    """The f32 number next to a threshold, towards the limit. Upwards, the result is above 0 in all
    engines."""
    known, up = known_of(value).array, limit > 0
    if known is not None:
        moved = np.nextafter(known.astype(np.float32), np.float32(limit))
        return b.constant(np.maximum(moved, np.float32(LEAST if up else 0)))
    if up:
        return b.max(value * (1 + _ULP), LEAST)
    return _before_next(value) or (value * (1 - _ULP))


@reads("NonMaxSuppression", format="ir", until=4)
def read_non_max_suppression(b: Builder, node: Node) -> Result:
    """NonMaxSuppression (1 to 4): versions 1, 3 and 4 return the indices only."""
    inputs = list(node.inputs)
    if len(inputs) > 5:
        raise Refused("it has more inputs than its version allows")
    names = ("box_encoding", "sort_result_descending", "output_type")
    attributes = {name: node.attributes[name] for name in names if name in node.attributes}
    return b.node("ir::NonMaxSuppression", inputs, 3, attributes).outputs[0]


@legalizes("ir::NonMaxSuppression", target="onnx")
def ir_non_max_suppression_to_onnx(b: Builder, node: Node) -> Result:
    """NonMaxSuppression-5 and -9 as NonMaxSuppression. Scores and count are computed from the
    indices, unless a sigma lowers the scores (soft suppression)."""
    boxes, scores = required(node, 0, 1)
    limit, overlap, least, sigma = (node.input(i) for i in range(2, 6))
    element, center = node.attributes["output_type"], node.attributes["box_encoding"] == "center"
    limit = b.constant([0]) if limit is None else b.reshape(b.as_i64(limit), -1)
    overlap = b.constant(0.0) if overlap is None else b.cast(overlap, F32)
    boxes, scores = b.cast(boxes, F32), b.cast(scores, F32)
    softness = 0.0 if sigma is None else b.known(known_of(sigma).array, "its soft_nms_sigma").item()
    if softness:
        lowest = _lowest(b, least)
        indices, selected = _softly(b, boxes, scores, limit, lowest, softness, center)
    else:
        most, largest = _limit(b, limit, overlap), b.reshape(_neighbour(b, overlap, -np.inf), -1)
        limits = most, largest, _lowest(b, least)
        indices = b.op("NonMaxSuppression", boxes, scores, *limits, center_point_box=center)
        selected = b.op("GatherND", scores, indices)
    if node.attributes["sort_result_descending"]:
        selected, indices = by_score(b, selected, indices)
    labels = b.cast(b.cut(indices, 1, 0, 2), F32)
    rows = b.concat(1, labels, b.op("Unsqueeze", selected, [1]))
    return b.cast(indices, element), rows, b.cast(b.sizes(selected, 0), element)


def _lowest(b: Builder, least: Value | None) -> Value:
    return b.constant([0.0]) if least is None else b.reshape(b.cast(least, F32), -1)


def _softly(
    b: Builder, boxes: Value, scores: Value, limit: Value, least: Value, sigma: float, center: bool
) -> tuple[Value, Value]:
    """The rows (image, class, box) of the selected boxes, and their lowered scores. As in OpenVINO,
    each box lowers the scores of all boxes that it overlaps at all."""
    scale = -0.5 / sigma if sigma > 0 else 0.0

    def rule(
        b: Builder, scores: Value, overlap: Value, states: Values, fixed: Values
    ) -> tuple[Value, Values]:
        factor = b.op("Exp", overlap * overlap * scale)
        lowered = scores * factor
        return b.where((scores > NONE) & (lowered > fixed[0]), lowered, NONE), states

    one, other = b.split(boxes, 2, 2, 2)
    if center:
        half = other * 0.5
        low, high = one - half, one + half
    else:
        low, high = b.min(one, other), b.max(one, other)
    return suppressed(b, with_area(b, low, high), scores, limit, least, over_union, rule, [least])


def _limit(b: Builder, limit: Value, overlap: Value) -> Value:
    """The maximum number of boxes of a class. At a threshold of 0, an overlap of 0 suppresses too,
    so that one box stays."""
    known, number = known_of(overlap).array, known_of(limit).array
    if _before_next(overlap) is not None or (known is not None and (known > 0).all()):
        return limit
    if known is not None and number is not None:
        return b.constant(np.minimum(number, 1))
    return b.where(overlap <= 0.0, b.min(limit, 1), limit)


def _before_next(value: Value) -> Value | None:
    """The threshold before `_neighbour` increased it."""
    largest = producer_of(value, "Max")
    product = producer_of(operand_of(value, "Max"), "Mul")
    if largest is None or product is None:
        return None
    factor, least = known_of(product.input(1)).array, known_of(largest.input(1)).array
    same = factor is not None and factor == 1 + _ULP and least is not None and least == LEAST
    return product.inputs[0] if same else None


def boxes_and_scores(node: Node) -> must.Constraints:
    """NonMaxSuppression: boxes [batch, boxes, 4] and scores [batch, classes, boxes]."""
    boxes, scores = must.operands(node, 2)
    for one, other in ((boxes[0], scores[0]), (boxes[1], scores[2]), (boxes[2], 4)):
        yield must.Same(one, other, "{} and {} are no boxes and scores", boxes, scores)


@infers("NonMaxSuppression")
def infer_non_max_suppression(node: Node) -> list[TensorType]:
    """NonMaxSuppression: a row for each selected box, or none if no box is wanted."""
    limit = node.input(2)
    none = limit is None or known_of(limit).ints == (0,)
    return [TensorType(I64, (0 if none else ANY, 3))]


@infers("ir::NonMaxSuppression")
def infer_ir_non_max_suppression(node: Node) -> list[TensorType]:
    """NonMaxSuppression-9 has a row for each selected box. There are at most as many rows for each
    image and class as the limit and the number of boxes allow."""
    scores, most = first(node, 1), known_of(node.input(2)).parts
    most_rows: Dim = ANY
    if scores.rank == 3:
        batches, classes, boxes = scores.shape or ()
        if most is not None:
            boxes = meet_dim(at_most(boxes), at_most(as_dim(most[0])))
        most_rows = at_most(dim_product((batches, classes, boxes)))
    element = node.attributes["output_type"]
    return [
        TensorType(element, (most_rows, 3)),
        TensorType(F32, (most_rows, 3)),
        TensorType(element, (1,)),
    ]


must.hold(
    "NonMaxSuppression",
    must.has_rank(3, 3),
    must.has_rank(3, 3, of=1),
    must.one_element(2, 3, 4),
    boxes_and_scores,
)


@guards("NonMaxSuppression", "ir::NonMaxSuppression")
def _suppression(b: Builder, node: Node, counts: Value) -> SafeInputs:
    """NonMaxSuppression: known limits, and as many scores as boxes."""
    overlap, most = (known_of(node.input(place)).array for place in (3, 2))
    if node.input(2) is not None and (most is None or (most < 0).any()):
        raise Unsafe("data decide how many boxes it chooses")
    if node.input(3) is not None and (
        overlap is None or not ((overlap >= 0) & (overlap <= 1)).all()
    ):
        raise Unsafe("data decide how much boxes may overlap")
    if why := contradiction(node):
        raise Unsafe(f"it fails when it runs: {why}")
    if any(v is None or v.rank is None for v in node.inputs[:2]):
        raise Unsafe("the rank of its input is not known")
    if any(not is_one_size(pair) for pair in equal_sizes(node)):
        raise Unsafe("sizes may not go together there")
    return None
