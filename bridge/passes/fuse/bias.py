"""Addends of a matrix product or a convolution that can become an input of it."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import Interval
from bridge.operators.matmul.matmul import GEMM
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses, along_channels

VECTOR = var(rank=1)
BIAS = op("Reshape", VECTOR).shared() | constant()
CONV = op("Conv | ConvTranspose", var(), var(), None)


@fuses(CONV + BIAS)
def convolution_with_bias(b: Builder, match: Found, uses: Uses) -> Value | None:
    """A constant for each channel, or a vector laid along them, added to a convolution without a
    bias."""
    value, conv = match[CONV], match.node(CONV)
    if value.shape is None or value.element is None or not value.element.is_float:
        return None
    vector = along_channels(b, match[BIAS], value.shape[1], len(value.shape))
    if vector is None:
        return None
    inputs = [*conv.inputs[:2], match.get(VECTOR, vector)]
    b.name = conv.name
    return b.op(conv.op, *inputs, **conv.attributes)


X, Y, ADDEND = var(rank=2), var(rank=2), var()
FACTOR = constant(rank=0)
PRODUCT = op("MatMul | Gemm", X, Y, None)


@fuses((PRODUCT | (PRODUCT * FACTOR)) + ADDEND, PRODUCT)
def gemm(b: Builder, match: Found, uses: Uses) -> Value | None:
    """A product of two matrices, perhaps scaled, with an addend that is no larger."""
    value, product = match[PRODUCT], match.node(PRODUCT)
    if value.element not in GEMM or not _fits(match[ADDEND], value):
        return None
    flags = product.attributes if product.op == "Gemm" else {}
    alpha = flags.get("alpha", 1.0)
    factor = known_of(match.get(FACTOR)).array
    if factor is not None and alpha != 1:
        return None
    alpha = alpha if factor is None else float(factor)
    return b.op("Gemm", match[X], match[Y], match[ADDEND], **{**flags, "alpha": alpha})


def _fits(addend: Value, product: Value) -> bool:
    """Whether something broadcasts to a matrix without making that larger."""
    own, whole = addend.shape, product.shape
    if own is None or whole is None or len(own) > len(whole):
        return False
    dims = zip(reversed(own), reversed(whole), strict=False)
    return all(dim == 1 or (dim == wide and not isinstance(dim, Interval)) for dim, wide in dims)
