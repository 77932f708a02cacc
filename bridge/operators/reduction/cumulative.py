"""CumSum and CumProd."""

import numpy as np

from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.known import known_of
from bridge.operators import Builder, Node, Result, Value, legalizes, ranks, reads, required


@reads("CumSum", format="ir")
def read_cum_sum(b: Builder, node: Node) -> Result:
    """CumSum-3 has the default axis 0."""
    axis = node.input(1)
    attributes = {key: node.attributes[key] for key in ("exclusive", "reverse")}
    return b.op("CumSum", node.inputs[0], b.constant(0) if axis is None else axis, **attributes)


@legalizes("CumSum", target="ir")
def scalar_axis(b: Builder, node: Node) -> Result:
    """CumSum (11 to 14): the axis of CumSum-3 must be a scalar."""
    x, axis = required(node, 0, 1)
    if axis.rank == 0:
        return None
    return b.op("CumSum", x, b.scalar(axis), **node.attributes)


@legalizes("CumProd", target="ir")
@legalizes("CumProd", target="onnx")
def cum_prod(b: Builder, node: Node) -> Result:
    """CumProd-26 along a known axis. For a computed axis, the products along each axis are
    computed, and one of them is selected."""
    x, given = required(node, 0, 1)
    if b.opset >= 26:
        return None
    (rank,) = ranks(node, 0)
    known = known_of(given).ints
    reverse, exclusive = node.attributes["reverse"], node.attributes["exclusive"]
    if known is not None:
        return _products(b, x, known[0] % rank, reverse, exclusive)
    given = b.scalar(given) % rank
    result = _products(b, x, 0, reverse, exclusive)
    for axis in range(1, rank):
        result = b.where(given.equal(axis), _products(b, x, axis, reverse, exclusive), result)
    return result


def _products(b: Builder, x: Value, axis: int, reverse: bool, exclusive: bool) -> Value:
    """Products along a new axis. The factors are the elements up to the index, and 1 for the
    others. Memory grows with the square of the axis."""
    to = b.positions(x, axis)
    by = b.unsqueeze(to, 1)
    compare = {
        (False, False): "LessOrEqual", (False, True): "Less",
        (True, False): "GreaterOrEqual", (True, True): "Greater",
    }[reverse, exclusive]  # fmt: skip
    reaches = b.op(compare, to, by)
    behind = len(x.dims) - 1 - axis
    if behind:
        reaches = b.unsqueeze(reaches, *range(2, 2 + behind))
    wide = b.where(reaches, b.unsqueeze(x, axis), np.array(1))
    return b.op("ReduceProd", wide, [axis + 1], keepdims=False)


must.hold(("CumProd", "CumSum"), must.axes_in(1), must.one_element(1))
