"""A FakeQuantize of open shape, behind arithmetic with one constant for each channel.

The CPU plugin fuses the arithmetic into the FakeQuantize, and takes the first channel for all.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.opaque import is_hidden, undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting

ARITHMETIC = ("Add", "Div", "Mul", "Sub")
"""Arithmetic that the plugin fuses into a FakeQuantize."""

BOUNDS = ("Clip", "Max", "Min")
"""Operators that the plugin fuses into a FakeQuantize before the arithmetic."""

PRODUCTS = (
    "Conv", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData", "MatMul",
)  # fmt: skip
"""Operators whose kernels compute the arithmetic and the FakeQuantize behind them."""

LEVELS = (16, 256)
"""The levels for which OpenVINO moves the arithmetic into the limits of the FakeQuantize."""


def of_copy(b: Builder, node: Node, place: Place) -> Result:
    """The FakeQuantize of a copy of its data, which the plugin does not fuse."""
    x = node.inputs[0]
    if x is None or (x.rank or 0) < 2 or (place.body is None and is_static(x.shape)):
        return None
    value, behind, moves = x, False, node.attributes["levels"] in LEVELS and place.body is None
    while (made := place.single_use(value, *ARITHMETIC, *BOUNDS)) and not is_hidden(
        value, "memory"
    ):
        before, constant = _operands(made)
        if before is None:
            break
        if made.op in BOUNDS:
            moves = False
        elif constant is not None and _is_for_channels(constant, x):
            behind = True
            moves &= before.rank == x.rank and isinstance(before.dims[1], int)
            moves &= made.op in ("Add", "Sub") or bool((constant.array() > 0).all())
        value = before
    is_product = value.producer is not None and value.producer.op in PRODUCTS
    if not behind or (place.count(value) == 1 if is_product else moves):
        return None
    return with_hidden(b, node, "memory", [True, *[False] * 4])


def _operands(node: Node) -> tuple[Value | None, Tensor | None]:
    """The only operand that is computed, and a constant operand."""
    computed, constant = [], None
    for value in node.inputs:
        known = None if value is None else value.behind("Cast").constant
        if known is not None:
            constant = known
        elif value is not None:
            computed.append(value)
    return (computed[0] if len(computed) == 1 else None), constant


def _is_for_channels(constant: Tensor, x: Value) -> bool:
    """Whether the elements of a constant differ along axis 1 alone."""
    shape = (1,) * (len(x.dims) - len(constant.shape)) + constant.shape
    if len(shape) != len(x.dims) or shape[1] != constant.size or constant.size < 2:
        return False
    elements = constant.array()
    return bool((elements != elements.flat[0]).any())


QUIRK = Quirk(
    releases="2026.4",
    symptom="A FakeQuantize behind Add, Sub, Mul or Div with a constant for each channel has the "
    "constant of the first channel for all. This happens in a body or with a dynamic shape.",
    fires="At a FakeQuantize in a body or of open shape, behind such arithmetic, or behind its "
    "bounds, where nothing else reads the arithmetic. Not if a convolution or a MatMul in front "
    "computes all of it. Not if OpenVINO moves the constants into the limits: without bounds, with "
    "16 or 256 levels, a known number of channels, and no scale below 0.",
    safe="The maximum of a value with itself is the value.",
    cost="a maximum of the data with itself",
    run=rewriting("FakeQuantize", by=of_copy, uses=True),
    undo=undone("memory"),
)
