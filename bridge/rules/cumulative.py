"""CumSum and CumProd."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node
from bridge.neutral.types import I64
from bridge.rules import Refused, Result, expands, reads
from bridge.rules.idioms import cast, positions, scalar, unsqueeze


@reads("CumSum", format="ir")
def read_cum_sum(b: Builder, node: Node) -> Result:
    """CumSum-3's axis is 0 where it is not given."""
    axis = node.input(1)
    attributes = {
        key: node.attributes.get(key, "false").lower() in ("true", "1")
        for key in ("exclusive", "reverse")
    }
    return b.op("CumSum", node.inputs[0], b.constant(0) if axis is None else axis, **attributes)


@expands("CumSum", target="ir")
def scalar_axis(b: Builder, node: Node) -> Result:
    """OpenVINO wants the axis to be a scalar."""
    x, axis = node.inputs
    assert axis is not None
    if axis.rank == 0:
        return None
    return b.op("CumSum", x, scalar(b, axis), **node.attributes)


@expands("CumProd", target="ir")
@expands("CumProd", target="onnx")
def cum_prod(b: Builder, node: Node) -> Result:
    """Each element is the product, along a further axis, of the input where an index reaches to
    it and of 1 elsewhere. Takes memory that grows with the square of the axis."""
    x, axes = node.inputs
    assert x is not None and b.target is not None
    if b.target.format == "onnx" and b.target.opset >= 26:
        return None
    known = integers(axes)
    if known is None or x.rank is None:
        raise Refused("CumProd needs a constant axis and an input of known rank here")
    axis, reverse = known[0] % x.rank, node.attributes["reverse"]
    to = positions(b, x, axis)
    by = unsqueeze(b, to, 1)
    compare = {
        (False, False): "LessOrEqual", (False, True): "Less",
        (True, False): "GreaterOrEqual", (True, True): "Greater",
    }[reverse, node.attributes["exclusive"]]  # fmt: skip
    reaches = b.op(compare, to, by)
    behind = x.rank - 1 - axis
    if behind:
        reaches = unsqueeze(b, reaches, *range(2, 2 + behind))
    wide = b.op("Where", reaches, unsqueeze(b, x, axis), b.like(np.array(1), x))
    return b.op("ReduceProd", wide, b.constant([axis + 1]), keepdims=False)


@expands("CumSum", target="onnx")
def onnx_axis(b: Builder, node: Node) -> Result:
    """ONNX's axis is i32 or i64."""
    x, axis = node.inputs
    assert axis is not None
    if axis.element is None or axis.element.name in ("i32", "i64"):
        return None
    return b.op("CumSum", x, cast(b, axis, I64), **node.attributes)
