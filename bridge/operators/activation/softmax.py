"""Softmax, LogSoftmax, Hardmax."""

import numpy as np

from bridge.neutral.inference import constraints as must
from bridge.operators import Builder, Node, Result, Value, legalizes, ranks, reads


@reads("Softmax", "LogSoftmax", "Hardmax", format="onnx", until=12)
def flattened(b: Builder, node: Node) -> Result:
    """Hardmax, LogSoftmax and Softmax (1 to 12): the axes from `axis` (default 1) on are one."""
    return over_all_from(b, node.op, node.operand(0), node.attributes.get("axis", 1))


def over_all_from(b: Builder, op: str, x: Value, axis: int) -> Value:
    """The operator over all axes from one on."""
    if axis == -1 or (x.rank is not None and x.rank and axis % x.rank == x.rank - 1):
        return b.op(op, x, axis=-1)
    result = b.op(op, b.op("Flatten", x, axis=axis), axis=-1)
    return b.op("Reshape", result, b.op("Shape", x), allowzero=True)


@legalizes("Softmax", "LogSoftmax", target="onnx")
def of_scalar(b: Builder, node: Node) -> Result:
    """Softmax and LogSoftmax (1 to 13): IR accepts a scalar, but ONNX does not."""
    x = node.operand(0)
    if x.rank != 0:
        return None
    vector = b.op("Reshape", x, [1])
    return b.op("Reshape", b.op(node.op, vector, axis=0), np.zeros(0, np.int64))


@legalizes("Hardmax", target="ir")
def hardmax(b: Builder, node: Node) -> Result:
    """Hardmax (1 to 13): 1 at the first of the largest elements along the axis, 0 elsewhere."""
    x = node.operand(0)
    axis = node.attributes["axis"]
    best = b.op("ArgMax", x, axis=axis, keepdims=True)
    places = b.positions(x, axis)
    if axis != -1:
        (rank,) = ranks(node, 0)
        places = b.unsqueeze(places, *range(1, rank - axis % rank))
    return b.cast(places.equal(best), x.element)


must.hold(("Hardmax", "LogSoftmax", "Softmax"), must.axis_attribute("axis"))
