"""Writes operators that a device or a release lacks with other operators, if a short exact form
exists."""

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.types import I64
from bridge.operators import Result, required
from bridge.passes.context import Context
from bridge.quirks.quirk import Place, rewriting
from bridge.targets import device_of, read_since


def write_in_others(model: Model, context: Context) -> None:
    """Rewrites, in place, the operators that the device or the release lacks and that `FORMS`
    knows."""
    options = context.options
    lacks = device_of(options).lacks | {t for t, v in _NEW.items() if read_since(t, v, options)}
    forms = {op: form for op, (type, form) in FORMS.items() if type in lacks}

    def written(b: Builder, node: Node, place: Place) -> Result:
        return forms[node.op](b, node)

    if forms:
        rewriting(*forms, by=written, name=__name__)(model.graph, context)


def _is_nan(b: Builder, node: Node) -> Value:
    """Only NaN is not equal to itself."""
    x = node.operand(0)
    return ~x.equal(x)


def _is_inf(b: Builder, node: Node) -> Value | None:
    """Whether elements equal one of the wanted infinities."""
    x = node.input(0)
    if x is None or x.element is None:
        return None
    result: Value | None = None
    for wanted, sign in (("detect_positive", 1), ("detect_negative", -1)):
        if node.attributes[wanted]:
            equal = x.equal(b.like(sign * np.inf, x))
            result = equal if result is None else result | equal
    return result


def _is_finite(b: Builder, node: Node) -> Value:
    """NaN or an infinity minus itself is NaN; any other number minus itself is 0."""
    x = node.operand(0)
    difference = x - x
    return difference.equal(difference)


def _softsign(b: Builder, node: Node) -> Value | None:
    """Its definition: x / (1 + |x|)."""
    x = node.input(0)
    if x is None or x.element is None:
        return None
    return x / (b.like(1, x) + abs(x))


def _bitwise_not(b: Builder, node: Node) -> Value | None:
    """Each bit turned round, by an exclusive or with ones."""
    x = node.input(0)
    if x is None or x.element is None:
        return None
    return b.op("BitwiseXor", x, b.cast(b.constant(-1, I64), x.element))


def _scatter_nd(b: Builder, node: Node) -> Value | None:
    """With a reduction: ScatterElementsUpdate of rows. The indices of a row become one number."""
    data, indices, updates = required(node, 0, 1, 2)
    reduction = node.attributes["reduction"]
    depth = None if indices.shape is None else indices.shape[-1]
    if reduction == "none" or not isinstance(depth, int) or data.rank is None:
        return None
    if reduction == "sub":
        reduction, updates = "add", -updates
    sizes = b.sizes(data, *range(data.rank))
    outer, inner = sizes[:depth], b.op("ReduceProd", sizes[depth:], [0], keepdims=True)
    strides = [b.op("ReduceProd", sizes[at + 1 : depth], [0], keepdims=True) for at in range(depth)]
    indices = b.cast(indices, I64)
    indices = b.where(indices < 0, indices + outer, indices)
    rows = b.op("ReduceSum", indices * b.concat(0, *strides), [-1], keepdims=True)
    count = b.op("ReduceProd", outer, [0], keepdims=True)
    updates = b.reshape(updates, -1, inner)
    rows = b.op("Expand", b.reshape(rows, -1, 1), b.op("Shape", updates))
    flat = b.reshape(data, count, inner)
    written = b.op("ScatterElements", flat, rows, updates, 0, reduction=reduction)
    return b.op("Reshape", written, sizes, allowzero=True)


def _identity(b: Builder, node: Node) -> Value | None:
    """Its input."""
    return node.input(0)


FORMS = {
    "BitwiseNot": ("BitwiseNot", _bitwise_not),
    "Identity": ("Identity", _identity),
    "IsFinite": ("IsFinite", _is_finite),
    "IsInf": ("IsInf", _is_inf),
    "IsNaN": ("IsNaN", _is_nan),
    "ScatterND": ("ScatterNDUpdate of opset15", _scatter_nd),
    "Softsign": ("SoftSign", _softsign),
}
"""By operator: the layer type that a device may lack, and its form in others."""

_NEW = {"Identity": "opset16", "ScatterNDUpdate of opset15": "opset15"}
"""The operator sets of layer types that older releases lack."""
