"""Reductions: where the axes come from, empty axes, and reductions that only one format has."""

from __future__ import annotations

import numpy as np

from bridge.ir_format.attributes import parse_bool
from bridge.neutral.builder import Builder, integers, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BF16, BOOL, I32, I64, is_static
from bridge.rules import Refused, Result, expands, reads
from bridge.rules.idioms import as_i64, cast, vector

IR = (
    "ReduceL1", "ReduceL2", "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum",
)  # fmt: skip
ALL = (*IR, "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
LARGEST_BF16 = np.float32(0xFF * 2.0**120)


@reads(*IR, format="ir")
def read_reduction(b: Builder, node: Node) -> Result:
    """IR reduces nothing where the axes are empty; its axes may be a scalar and of any integer
    type."""
    data, axes = node.inputs
    assert axes is not None
    keep = parse_bool(node.attributes.get("keep_dims", "false"))
    return b.op(
        node.op, data, vector(b, as_i64(b, axes)), keepdims=keep,
        noop_with_empty_axes=not integers(axes),
    )  # fmt: skip


def known_axes(node: Node) -> tuple[int, ...] | None:
    """The axes, () where none are given; None where they are computed."""
    axes = node.input(1)
    return () if axes is None or axes.shape == (0,) else integers(axes)


def _elementwise(b: Builder, op: str, x: Value) -> Value:
    """What a reduction does to each element by itself."""
    match op:
        case "ReduceL1" | "ReduceL2":
            return b.op("Abs", x)
        case "ReduceLogSum":
            return b.op("Log", x)
        case "ReduceSumSquare":
            return b.op("Mul", x, x)
    return b.op("Identity", x)


@expands(*ALL, target="ir")
@expands(*ALL, target="onnx")
def empty_axes(b: Builder, node: Node) -> Result:
    """A reduction that is known to reduce nothing, or to reduce something, needs no
    `noop_with_empty_axes`."""
    data, axes = node.input(0), node.input(1)
    assert data is not None
    known = known_axes(node)
    if not node.attributes["noop_with_empty_axes"] or known is None:
        return None
    if not known:
        return _elementwise(b, node.op, data)
    return b.op(node.op, data, axes, keepdims=node.attributes["keepdims"])


@expands("Equal", target="ir")
def all_minus_infinity(b: Builder, node: Node) -> Result:
    """Whether the greatest is -inf, as the standard's Attention asks of each row of its mask, is
    whether all are: OpenVINO's CPU plugin (2026.4) takes the lowest finite number for the greatest
    of -inf alone."""
    for greatest, other in (node.inputs, reversed(node.inputs)):
        assert greatest is not None
        reduced, bound = greatest.producer, values_of(_uncast(other))
        if reduced is None or reduced.op != "ReduceMax" or bound is None:
            continue
        if bound.size == 1 and bound.dtype.kind == "f" and np.isneginf(bound).all():
            data, *axes = reduced.inputs
            assert data is not None
            lowest = b.op("Equal", data, b.like(-np.inf, data))
            return b.op("ReduceLogicalAnd", lowest, *axes, **reduced.attributes)
    return None


@expands("Equal", target="ir")
def infinite_bf16(b: Builder, node: Node) -> Result:
    """What equals an infinity lies beyond the greatest finite numbers. OpenVINO's CPU plugin
    (2026.4) computes bf16 in f32 where the processor has no instructions for it, and makes the
    largest numbers of f32 of a constant's infinities then: neither they nor what is infinite at
    run time equal the other, but both lie beyond the numbers of bf16."""
    for x, other in (node.inputs, reversed(node.inputs)):
        bound = values_of(_uncast(other))
        if x is None or x.element is not BF16 or bound is None or not bound.size:
            continue
        numbers = bound.astype(np.float32)
        if np.isinf(numbers).all() and np.unique(numbers).size == 1:
            limits = b.like(np.copysign(LARGEST_BF16, numbers), x)
            return b.op("Less", x, limits) if numbers.flat[0] < 0 else b.op("Less", limits, x)
    return None


def _uncast(value: Value | None) -> Value | None:
    """What a value was before conversions between types."""
    while value is not None and value.producer is not None:
        if value.producer.op not in ("Cast", "CastLike"):
            break
        value = value.producer.inputs[0]
    return value


@expands(*ALL, target="ir")
def all_axes(b: Builder, node: Node) -> Result:
    """IR has the axes as an input, even where they are all."""
    data = node.input(0)
    assert data is not None
    if known_axes(node) != ():
        return None
    keep = node.attributes["keepdims"]
    if data.rank is None:
        count = b.op("Squeeze", b.op("Shape", b.op("Shape", data)), b.constant([0]))
        every = b.op("Range", b.constant(0), count, b.constant(1))
    elif data.rank == 0:
        return _elementwise(b, node.op, data)
    else:
        every = b.constant(list(range(data.rank)))
    return b.op(node.op, data, every, keepdims=keep)


@expands(*ALL, target="ir")
def computed_axes(b: Builder, node: Node) -> Result:
    """What IR calls empty axes is what ONNX calls so with `noop_with_empty_axes`."""
    if not node.attributes["noop_with_empty_axes"]:
        return None
    return b.op(node.op, *node.inputs, keepdims=node.attributes["keepdims"])


_OF_NOTHING = {"ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceMean": np.nan}


@expands(*_OF_NOTHING, target="ir")
def nothing_to_reduce(b: Builder, node: Node) -> Result:
    """The reduction of no elements is what the standard says, where a size of 0 is known; OpenVINO
    gives the largest finite numbers, and 0 for the mean."""
    x, result = node.inputs[0], node.outputs[0]
    assert x is not None
    if x.element is None or not (x.element.is_float or x.element is BOOL):
        return None
    if x.shape is None or 0 not in x.shape or not is_static(result.shape) or 0 in result.shape:
        return None
    value = node.op == "ReduceMin" if x.element is BOOL else _OF_NOTHING[node.op]
    return b.constant(np.full(result.shape, value), x.element)


@expands("ReduceMax", "ReduceMin", target="ir")
def of_booleans(b: Builder, node: Node) -> Result:
    """ONNX's maximum and minimum of booleans are IR's logical reductions; these want constant
    axes."""
    x, axes = node.input(0), node.input(1)
    assert x is not None
    if x.element is not BOOL:
        return None
    if known_axes(node) is None:
        return cast(b, b.op(node.op, cast(b, x, I32), axes, **node.attributes), BOOL)
    op = "ReduceLogicalOr" if node.op == "ReduceMax" else "ReduceLogicalAnd"
    return b.op(op, x, axes, **node.attributes)


@expands(*ALL, target="ir")
def computed_rank(b: Builder, node: Node) -> Result:
    """Without the reduced axes, OpenVINO does not know the rank of a result whose axes are
    computed; where their number is known, the sizes that stay are computed and it does."""
    x, axes = node.input(0), node.input(1)
    assert x is not None
    if axes is None or node.attributes["keepdims"] or integers(axes) is not None:
        return None
    if x.rank is None or axes.rank != 1 or not isinstance(axes.shape[0], int):
        return None
    stay = x.rank - axes.shape[0]
    positive = b.op("Mod", axes, b.like(x.rank, axes))
    ones = b.op("Expand", b.constant([1]), b.constant([axes.shape[0]]))
    zeros = b.constant([0] * x.rank)
    gone = b.op("ScatterElements", zeros, positive, ones, b.constant(0))
    _, left = b.ops(
        "ir::TopK", 2, gone, b.constant(stay), axis=0, mode="min", sort="index",
        index_element_type=I64,
    )  # fmt: skip
    kept = b.op(node.op, x, axes, **{**node.attributes, "keepdims": True})
    return b.op("Reshape", kept, b.op("Gather", b.op("Shape", x), left, b.constant(0)))


@expands("ReduceLogicalAnd", "ReduceLogicalOr", target="onnx")
def logical(b: Builder, node: Node) -> Result:
    """The minimum and maximum of booleans; of numbers before operator set 20."""
    x, axes = node.input(0), node.input(1)
    assert x is not None and b.target is not None
    op = "ReduceMax" if node.op == "ReduceLogicalOr" else "ReduceMin"
    if b.target.opset >= 20:
        return b.op(op, x, axes, **node.attributes)
    return cast(b, b.op(op, cast(b, x, I32), axes, **node.attributes), BOOL)


@expands("ReduceLogSum", target="ir")
def log_sum(b: Builder, node: Node) -> Result:
    """log(sum(x))."""
    return b.op("Log", b.op("ReduceSum", *node.inputs, **node.attributes))


@expands("ReduceSumSquare", target="ir")
def sum_square(b: Builder, node: Node) -> Result:
    """sum(x²)."""
    x, axes = node.input(0), node.input(1)
    return b.op("ReduceSum", b.op("Mul", x, x), axes, **node.attributes)


@expands("ReduceLogSumExp", target="ir")
def log_sum_exp(b: Builder, node: Node) -> Result:
    """log(sum(exp(x - m))) + m for the maximum m, so that no exponential is infinite."""
    x, axes = node.input(0), node.input(1)
    most = b.op("ReduceMax", x, axes, keepdims=True)
    rest = b.op("ReduceSum", b.op("Exp", b.op("Sub", x, most)), axes, **node.attributes)
    if not node.attributes["keepdims"]:
        most = b.op("ReduceMax", x, axes, keepdims=False)
    return b.op("Add", b.op("Log", rest), most)


@expands(*IR, target="onnx")
def axes_as_attribute(b: Builder, node: Node) -> Result:
    """Before operator set 18 ONNX wants the axes of most reductions to be constants."""
    assert b.target is not None
    x, axes = node.input(0), node.input(1)
    if b.target.opset >= 18 or node.op == "ReduceSum" or axes is None:
        return None
    known = known_axes(node)
    if known == ():
        return b.op(node.op, x, keepdims=node.attributes["keepdims"])
    if known is None:
        raise Refused(
            "its axes are computed, which ONNX allows since operator set 18; write a newer one"
        )
    return None
