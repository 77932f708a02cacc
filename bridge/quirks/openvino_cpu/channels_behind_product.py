"""Arithmetic behind a MatMul with a constant for each part of one axis.

The CPU plugin computes such arithmetic in the kernel of the MatMul, which has the columns of the
product as its channels.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.opaque import is_hidden, undone, with_hidden
from bridge.quirks.quirk import ELEMENTWISE, Place, Quirk, rewriting

SCALING = ("Add", "Div", "Mul", "PRelu", "Sub")
"""Arithmetic with one constant for each channel in the kernel of a MatMul."""

FAR = 8
"""The number of element-wise operators behind a MatMul that its kernel may compute."""


def of_copy(b: Builder, node: Node, place: Place) -> Result:
    """The arithmetic on a copy of the product, which the plugin computes apart."""
    one, other = node.inputs
    wanted = [_is_confused(one, other, node, place), _is_confused(other, one, node, place)]
    return with_hidden(b, node, "memory", wanted)


def _is_confused(data: Value | None, channels: Value | None, node: Node, place: Place) -> bool:
    """Whether the axis of a constant is not the one that the kernel takes, or has no size yet."""
    known = None if channels is None else channels.behind("Cast").constant
    rank = node.outputs[0].rank or 0
    if data is None or data.rank != rank or known is None or rank < 2:
        return False
    if known.size < 2 or known.size != max(known.shape):
        return False
    axis = rank - len(known.shape) + known.shape.index(known.size)
    if node.op == "PRelu" and len(known.shape) == 1:
        axis = 1
    product = _product(data)
    if product is None:
        return False
    if axis == rank - 1:
        return not isinstance(data.dims[axis], int)
    is_open = place.body is not None or not is_static(data.shape)
    weighted = product.op == "MatMul" and is_known(product.inputs[1], place)
    return axis == 1 and weighted and (is_open or node.op == "PRelu")


def _product(value: Value) -> Node | None:
    """The product behind element-wise operators, each with one operand that is computed."""
    for _ in range(FAR):
        made = value.producer
        if made is None or is_hidden(value, "memory"):
            return None
        if made.op in ("Einsum", "MatMul"):
            return made
        if made.op not in ELEMENTWISE and made.op != "PRelu":
            return None
        computed = [v for v in made.inputs if v is not None and v.behind("Cast").constant is None]
        if len(computed) != 1:
            return None
        value = computed[0]
    return None


QUIRK = Quirk(
    releases="2026.4",
    symptom="A product of shape [n, 4, 3, 4] plus a constant of shape [1, 4, 1, 1] has this "
    "constant along the last axis. If another size is there, the model fails. It also fails if a "
    "constant lies along a last axis of open size.",
    fires="At Add, Sub, Mul or Div of open shape, or PRelu, behind a MatMul by constants, if the "
    "other operand is a constant along axis 1, and this axis is not the last one. At these "
    "operators behind any product, if a constant lies along a last axis of open size.",
    safe="The maximum of a value with itself is the value.",
    cost="a maximum of the product with itself, which the plugin computes with the arithmetic",
    run=rewriting(*SCALING, by=of_copy),
    undo=undone("memory"),
)
