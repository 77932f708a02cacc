"""IR's RegionYolo."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, Dim, TensorType, Type
from bridge.operators import Result, legalizes
from bridge.operators.builder_helpers import ranks


@legalizes("RegionYolo", target="onnx")
def region_yolo_to_onnx(b: Builder, node: Node) -> Result:
    """For each anchor: sigmoid of the box's place and of the objectness, softmax or sigmoid of
    the classes (RegionYolo-1)."""
    data, attributes = node.inputs[0], node.attributes
    assert data is not None
    rank = ranks(node, 0)[0]
    softmax, classes, coords = (attributes[k] for k in ("do_softmax", "classes", "coords"))
    anchors = attributes["num"] if softmax else len(attributes["mask"])
    each = coords + classes + 1
    batch, height, width = b.sizes(data, 0), b.sizes(data, 2), b.sizes(data, 3)
    boxes = b.reshape(data, batch, anchors, each, height, width)
    place, extent, objectness, scores = b.split(boxes, 2, 2, coords - 2, 1, classes)
    scores = b.op("Softmax", scores, axis=2) if softmax else b.op("Sigmoid", scores)
    y = b.concat(2, b.op("Sigmoid", place), extent, b.op("Sigmoid", objectness), scores)
    if not softmax:
        return b.reshape(y, batch, anchors * each, height, width)
    axis, end = attributes["axis"] % rank, attributes["end_axis"] % rank
    before = [b.sizes(data, i) for i in range(axis)]
    after = [b.sizes(data, i) for i in range(end + 1, rank)]
    return b.reshape(y, *before, -1, *after)


@infers("RegionYolo")
def infer_region_yolo(node: Node) -> list[Type]:
    """RegionYolo: with softmax the axes from `axis` to `end_axis` joined, else the channels of the
    mask's boxes."""
    data, attributes = first(node), node.attributes
    if data.shape is None:
        return [TensorType(data.element)]
    if not attributes["do_softmax"]:
        channels = (attributes["classes"] + attributes["coords"] + 1) * len(attributes["mask"])
        return [TensorType(data.element, (data.shape[0], channels, *data.shape[2:]))]
    rank = len(data.shape)
    axis, end = attributes["axis"] % rank, attributes["end_axis"] % rank
    size: Dim = 1
    for dim in data.shape[axis : end + 1]:
        size = size * dim if isinstance(size, int) and isinstance(dim, int) else ANY
    return [TensorType(data.element, (*data.shape[:axis], size, *data.shape[end + 1 :]))]
