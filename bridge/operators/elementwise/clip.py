"""Clip and Clamp: bounds as inputs of the type of the data (ONNX), or as real attributes (IR)."""

import math

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.neutral.types import Element
from bridge.operators import Builder, Node, Result, Value, legalizes, reads


def bound(b: Builder, value: float, x: Value, up: bool) -> Value:
    """A real bound in the type of `x`. For integers, it is rounded up or down into the range of the
    type."""
    element: Element | None = x.element
    if element is None or not element.is_integer:
        with np.errstate(over="ignore"):
            return b.like(value, x) if element is not None else b.constant(np.float32(value))
    limits = np.iinfo(element.dtype)
    rounded = limits.min if value < limits.min else limits.max if value > limits.max else (
        math.ceil(value) if up else math.floor(value)
    )  # fmt: skip
    return b.constant(np.array(rounded, element.dtype))


@reads("Clamp", format="ir")
def clamp(b: Builder, node: Node) -> Result:
    """Clamp-1: for integers, the lower bound is rounded up and the upper bound down."""
    x = node.operand(0)
    low, high = (node.attributes[key] for key in ("min", "max"))
    return b.op("Clip", x, bound(b, low, x, True), bound(b, high, x, False))


@legalizes("Clip", target="ir")
def clip(b: Builder, node: Node) -> Result:
    """Clip (1 to 13). Clamp requires two finite constants in order; other bounds become a Maximum
    and a Minimum."""
    x, low, high = node.operand(0), node.input(1), node.input(2)
    bounds = [known_of(value).array for value in (low, high)]
    if x.element is not None and x.element.is_float and all(a is not None for a in bounds):
        least, most = (float(np.asarray(a).reshape(-1)[0]) for a in bounds)
        if math.isfinite(least) and math.isfinite(most) and least <= most:
            return None
    if low is not None:
        x = b.max(x, low)
    if high is not None:
        x = b.min(x, high)
    return x if x is not node.inputs[0] else b.op("Identity", x)
