"""A FakeQuantize of open shape, behind arithmetic with one constant for each channel.

The CPU plugin fuses the arithmetic into the FakeQuantize, and takes the first channel for all.
"""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.opaque import is_hidden, undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting

_OF_ARRAYS = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract}

ARITHMETIC = tuple(_OF_ARRAYS)
"""Arithmetic that the plugin fuses into a FakeQuantize."""

BOUNDS = ("Clip", "Max", "Min")
"""Operators that the plugin fuses into a FakeQuantize before the arithmetic."""

PRODUCTS = (
    "Conv", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData", "MatMul",
)  # fmt: skip
"""Operators whose kernels compute the arithmetic and the FakeQuantize behind them."""

LEVELS = (16, 255, 256)
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
            moves &= made.op in ("Add", "Sub") or bool((constant > 0).all())
        value = before
    is_product = value.producer is not None and value.producer.op in PRODUCTS
    if not behind or (place.count(value) == 1 if is_product else moves):
        return None
    return with_hidden(b, node, "memory", [True, *[False] * 4])


def _operands(node: Node) -> tuple[Value | None, np.ndarray | None]:
    """The only operand that is computed, and a constant operand."""
    computed, constant = [], None
    for value in node.inputs:
        known = None if value is None else _constants(value)
        if known is not None:
            constant = known
        elif value is not None:
            computed.append(value)
    return (computed[0] if len(computed) == 1 else None), constant


def _constants(value: Value) -> np.ndarray | None:
    """The elements of a constant, or of arithmetic of constants."""
    known = value.behind("Cast").constant
    if known is not None:
        elements = known.array()
        is_line = known.size == max(known.shape, default=1)
        return elements.astype(np.float32) if is_line else elements
    made = value.producer
    if made is None or made.op not in ARITHMETIC:
        return None
    x, y = (None if operand is None else _constants(operand) for operand in made.inputs)
    if x is None or y is None:
        return None
    with np.errstate(all="ignore"):
        return np.asarray(_OF_ARRAYS[made.op](x, y))


def _is_for_channels(constant: np.ndarray, x: Value) -> bool:
    """Whether the elements of a constant differ along axis 1 alone."""
    shape = (1,) * (len(x.dims) - constant.ndim) + constant.shape
    if len(shape) != len(x.dims) or shape[1] != constant.size or constant.size < 2:
        return False
    return bool((constant != constant.flat[0]).any())


QUIRK = Quirk(
    releases="2026.4",
    symptom="A FakeQuantize behind Add, Sub, Mul or Div with a constant for each channel has the "
    "constant of the first channel for all. This happens in a body or with a dynamic shape.",
    fires="At a FakeQuantize in a body or of open shape, behind such arithmetic, or behind its "
    "bounds, where nothing else reads the arithmetic. Not if a convolution or a MatMul in front "
    "computes all of it. Not if OpenVINO moves the constants into the limits: without bounds, with "
    "16, 255 or 256 levels, a known number of channels, and no scale below 0.",
    safe="The maximum of a value with itself is the value.",
    cost="a maximum of the data with itself",
    run=rewriting("FakeQuantize", by=of_copy, uses=True),
    undo=undone("memory"),
)
