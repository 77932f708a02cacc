"""IR's RegionYolo."""

from bridge.operators import Builder, Node, Result, legalizes, ranked


@legalizes("RegionYolo", target="onnx")
def region_yolo_to_onnx(b: Builder, node: Node) -> Result:
    """RegionYolo-1. For each anchor: sigmoid of the place of the box and of the objectness, softmax
    or sigmoid of the classes."""
    (data, rank), attributes = ranked(node), node.attributes
    softmax, classes, coords = (attributes[k] for k in ("do_softmax", "classes", "coords"))
    anchors = attributes["num"] if softmax else len(attributes["mask"])
    each = coords + classes + 1
    batch, height, width = b.sizes(data, 0), b.sizes(data, 2), b.sizes(data, 3)
    boxes = b.reshape(data, batch, anchors, each, height, width)
    place, extent, objectness, scores = b.split(boxes, 2, 2, coords - 2, 1, classes)
    scores = b.op("Softmax", scores, axis=2) if softmax else b.op("Sigmoid", scores)
    y = b.concat(2, b.op("Sigmoid", place), extent, b.op("Sigmoid", objectness), scores)
    axis, end = attributes["axis"] % rank, attributes["end_axis"] % rank
    if not softmax or end <= axis:
        return b.reshape(y, batch, anchors * each, height, width)
    before = [b.sizes(data, i) for i in range(axis)]
    after = [b.sizes(data, i) for i in range(end + 1, rank)]
    return b.reshape(y, *before, -1, *after)
