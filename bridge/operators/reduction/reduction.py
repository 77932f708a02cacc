"""Reductions: the source of the axes, empty axes, and reductions that only one format has."""

from collections.abc import Callable
from functools import reduce

import numpy as np

from bridge.neutral.inference import constraints as must, first, infers, knows
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, BOOL, I64, Shape, TensorType, is_static
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, reads, required
from bridge.operators.elementwise.known_values import (
    ARITHMETIC,
    Number,
    add,
    holds,
    maximum,
    minimum,
    mul,
    numbers_of,
)

IR = (
    "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum",
)  # fmt: skip
ALL = (*IR, "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")


@reads(*IR, format="ir")
def read_reduction(b: Builder, node: Node) -> Result:
    """Reductions of IR (ReduceSum-1, ReduceL1-4 and similar operators). Empty axes mean no
    reduction. The axes may be a scalar, and they may have any integer type."""
    data, axes = required(node, 0, 1)
    keep = node.attributes["keep_dims"]
    axes = b.vector(b.as_i64(axes))
    return b.op(node.op, data, axes, keepdims=keep, noop_with_empty_axes=not known_of(axes).length)


def known_axes(node: Node) -> tuple[int, ...] | None:
    """The axes; () if they are absent, None if they are computed."""
    axes = node.input(1)
    return () if axes is None or axes.shape == (0,) else known_of(axes).ints


def _elementwise(b: Builder, op: str, x: Value) -> Value:
    """The effect of a reduction on each element alone."""
    match op:
        case "ReduceL1" | "ReduceL2":
            return abs(x)
        case "ReduceLogSum":
            return b.op("Log", x)
        case "ReduceSumSquare":
            return x * x
    return b.op("Identity", x)


def _empty_axes(b: Builder, node: Node) -> Result:
    """Removes `noop_with_empty_axes` if the effect of the reduction is known. In IR, empty axes
    always mean no reduction."""
    data, axes, known = node.operand(0), node.input(1), known_axes(node)
    if not node.attributes["noop_with_empty_axes"] or (known is None and b.opset):
        return None
    if known == ():
        return _elementwise(b, node.op, data)
    keep = {"keepdims": node.attributes["keepdims"]}
    return b.node(node.op, [data, axes], 1, keep, extras={"noop": True}).outputs


def _all_axes(b: Builder, node: Node) -> Result:
    """Adds axes for a reduction over all axes, because IR requires the input."""
    data, axes = node.operand(0), node.input(1)
    is_open = axes is not None and known_axes(node) is None and known_of(axes).length is None
    if axes is not None and is_open and data.rank and not (node.extras or {}).get("noop"):
        # Behind computed axes stand all axes, for the case that there are none.
        count = b.op("Shape", axes)
        longer = b.concat(0, b.as_i64(axes), b.constant(list(range(data.rank))))
        axes = b.cut(longer, 0, 0, count + b.cast(count.equal(0), I64) * data.rank)
        node = Node(node.op, [data, axes], [], {**node.attributes, "noop_with_empty_axes": True})
        return _empty_axes(b, node)
    if known_axes(node) != ():
        return None
    keep = node.attributes["keepdims"]
    if data.rank is None:
        count = b.op("Squeeze", b.op("Shape", b.op("Shape", data)), [0])
        every = b.op("Range", 0, count, 1)
    elif data.rank == 0:
        return _elementwise(b, node.op, data)
    else:
        every = b.constant(list(range(data.rank)))
    return b.op(node.op, data, every, keepdims=keep)


def _as_many_axes(b: Builder, node: Node) -> Result:
    """Tells the number of computed axes, where the rank of the result tells it. Readers of IR take
    the rank from this number alone."""
    data, axes, rank = node.operand(0), node.input(1), node.outputs[0].rank
    if axes is None or known_of(axes).length is not None or node.attributes["keepdims"]:
        return None
    if not data.rank or rank is None or rank >= data.rank:
        return None
    every = b.constant(list(range(data.rank))) if rank == 0 else b.reshape(axes, data.rank - rank)
    return b.op(node.op, data, every, keepdims=False)


_OF_EMPTY = {"ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceMean": np.nan}


def _empty_axis(b: Builder, node: Node) -> Result:
    """A reduction along a known size of 0. IR does not define its result, so that the standard's
    result replaces it."""
    x, result = node.operand(0), node.outputs[0]
    if node.op not in _OF_EMPTY or x.element is None or x.element.is_integer:
        return None
    if x.shape is None or 0 not in x.shape or not is_static(result.shape) or 0 in result.shape:
        return None
    value = node.op == "ReduceMin" if x.element is BOOL else _OF_EMPTY[node.op]
    return b.filled(value, result.shape, x.element)


_OF_BOOLEANS = {"ReduceMax": "ReduceLogicalOr", "ReduceMin": "ReduceLogicalAnd"}
_LOGICAL = {logical: op for op, logical in _OF_BOOLEANS.items()}


def _of_booleans(b: Builder, node: Node) -> Result:
    """ONNX's maximum and minimum of booleans are IR's logical reductions."""
    x, op = node.operand(0), _OF_BOOLEANS.get(node.op)
    return b.op(op, *node.inputs, **node.attributes) if op and x.element is BOOL else None


def _log_sum_exp(b: Builder, node: Node) -> Result:
    """log(sum(exp(x - m))) + m for the maximum m, so that no exponential is infinite."""
    x, axes = node.input(0), node.input(1)
    most = b.op("ReduceMax", x, axes, keepdims=True)
    rest = b.op("ReduceSum", b.op("Exp", x - most), axes, **node.attributes)
    if not node.attributes["keepdims"]:
        most = b.op("ReduceMax", x, axes, keepdims=False)
    return b.op("Log", rest) + most


def _composed(b: Builder, node: Node) -> Result:
    """Reductions that IR lacks, as compositions of others."""
    x, axes = node.operand(0), node.input(1)
    match node.op:
        case "ReduceLogSum":
            return b.op("Log", b.op("ReduceSum", x, axes, **node.attributes))
        case "ReduceLogSumExp":
            return _log_sum_exp(b, node)
        case "ReduceSumSquare":
            return b.op("ReduceSum", x * x, axes, **node.attributes)
    return None


_STEPS = (_as_many_axes, _empty_axes, _all_axes, _empty_axis, _of_booleans, _composed)
"""The steps for IR, in this order; the first result counts."""


def _axes_as_attribute(b: Builder, node: Node) -> Result:
    """Makes the axes an attribute. Before operator set 18, most reductions of ONNX require constant
    axes."""
    x, axes = node.input(0), node.input(1)
    if b.opset >= 18 or node.op == "ReduceSum" or axes is None:
        return None
    known = known_axes(node)
    if known == ():
        return b.op(node.op, x, keepdims=node.attributes["keepdims"])
    if known is None:
        raise Refused("its axes are computed, which needs operator set 18; write a newer one")
    return None


@legalizes(*ALL, target="ir")
def reduction_to_ir(b: Builder, node: Node) -> Result:
    """Reductions (ReduceSum and similar operators, 1 to 20). IR has the axes as an input, does not
    reduce with empty axes, and lacks some reductions of ONNX."""
    for step in _STEPS:
        if (made := step(b, node)) is not None:
            return made
    return None


@legalizes(*ALL, target="onnx")
def reduction_to_onnx(b: Builder, node: Node) -> Result:
    """Reductions (ReduceSum-1, ReduceL1-4 and similar operators). ONNX lacks logical reductions.
    Before operator set 18, most axes are attributes. IR accepts the axes 0 and -1 for a scalar."""
    x, axes = node.input(0), node.input(1)
    if x is not None and x.rank == 0 and known_of(axes).ints:
        return b.op(node.op, x, keepdims=node.attributes["keepdims"])
    made = _empty_axes(b, node)
    if made is None and node.op in _LOGICAL:
        made = b.op(_LOGICAL[node.op], *node.inputs, **node.attributes)
    return made if made is not None or node.op not in IR else _axes_as_attribute(b, node)


_REDUCTIONS: dict[str, Callable[[Number, Number], Number]] = {
    "ReduceSum": add,
    "ReduceProd": mul,
    "ReduceMax": maximum,
    "ReduceMin": minimum,
    "ReduceLogicalAnd": ARITHMETIC["And"],
    "ReduceLogicalOr": ARITHMETIC["Or"],
}
_OF_NONE = {"ReduceSum": 0, "ReduceProd": 1}
"""The results of reductions without elements, if they are defined."""


@knows(*_REDUCTIONS)
def content_of_reduction(node: Node) -> tuple[Number, ...] | None:
    """Reductions of a vector or a scalar of known numbers."""
    data = node.inputs[0]
    content = numbers_of(data)
    if content is None or data is None or data.rank is None or data.rank > 1:
        return None
    axes = node.input(1)
    if axes is None or known_of(axes).ints == ():
        if node.attributes["noop_with_empty_axes"]:
            return content
    elif known_of(axes).ints is None:
        return None
    if not content:
        return (_OF_NONE[node.op],) if node.op in _OF_NONE else None
    result = (reduce(_REDUCTIONS[node.op], content),)
    return result if holds(node.outputs[0].element, result) else None


@infers(*ALL)
def infer_reduction(node: Node) -> list[TensorType]:
    """Reductions: without `axes`, or with 1 in their place."""
    data = first(node)
    return [TensorType(data.element, reduced(node, data.shape))]


def reduced(node: Node, shape: Shape) -> Shape:
    """The shape that a reduction of the neutral vocabulary leaves of `shape`."""
    if shape is None:
        return None
    rank, keep = len(shape), node.attributes["keepdims"]
    given = node.input(1)
    axes = known_of(given).ints
    if given is None or axes == () or given.shape == (0,):
        if node.attributes["noop_with_empty_axes"]:
            return shape
        axes = tuple(range(rank))
    if axes is not None:
        gone = {a % rank for a in axes} if rank else set()
        if keep:
            return tuple(1 if i in gone else d for i, d in enumerate(shape))
        return tuple(d for i, d in enumerate(shape) if i not in gone)
    if keep:
        return (ANY,) * rank
    count = known_of(given).length if given is not None and given.rank == 1 else None
    return None if count is None else (ANY,) * (rank - count)


def ranks_of_reduction(node: Node) -> must.Constraints:
    """A reduction keeps its axes, or loses the named ones. A scalar's axis may be called 0."""
    x, out = must.Operand(node.input(0)), must.Operand(node.outputs[0])
    axes = known_of(node.input(1)).ints
    if node.attributes["keepdims"]:
        yield must.Ranks(out, x)
    elif axes:
        yield from must.fewer_axes(out, x, axes, scalars=axes in ((0,), (-1,)))


must.hold(ALL, must.has_rank(0, 1, of=1), must.axes_in(1), ranks_of_reduction)
