"""What is added to a matrix product or a convolution and can be an input of it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import Interval
from bridge.operators.matmul.matmul import GEMM
from bridge.passes.fuse.uses import Uses, along_channels, either_way


def convolution_with_bias(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A constant for each channel, or a vector laid along them, added to a convolution without a
    bias."""
    for value, bias in either_way(node):
        conv = uses.single_use(value, "Conv", "ConvTranspose")
        if conv is None or conv.input(2) is not None or value.shape is None:
            continue
        if value.element is None or not value.element.is_float:
            continue
        vector = along_channels(b, bias, value.shape[1], len(value.shape))
        if vector is not None and values_of(bias) is None:
            vector = _laid_along(bias)
        if vector is not None:
            b.name = conv.name
            return b.op(conv.op, *conv.inputs[:2], vector, **conv.attributes)
    return None


def _laid_along(bias: Value) -> Value | None:
    """The vector that was reshaped to lie along one axis."""
    maker = bias.producer
    vector = maker.inputs[0] if maker is not None and maker.op == "Reshape" else None
    return vector if vector is not None and vector.rank == 1 else None


def gemm(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A product of two matrices, perhaps scaled, with something added that is no larger."""
    for value, addend in either_way(node):
        product, alpha = _product(value, uses)
        if product is None or not _fits(addend, value):
            continue
        x, y = product.inputs[:2]
        assert x is not None and y is not None
        if x.rank != 2 or y.rank != 2 or value.element not in GEMM:
            continue
        flags = product.attributes if product.op == "Gemm" else {}
        b.name = product.name
        return b.op("Gemm", x, y, addend, **{**flags, "alpha": alpha})
    return None


def _product(value: Value, uses: Uses) -> tuple[Node | None, float]:
    """The node that makes a product to which nothing is added, and the factor it is scaled by."""
    product = uses.single_use(value, "MatMul", "Gemm")
    if product is not None and product.input(2) is None:
        return product, product.attributes.get("alpha", 1.0)
    scaled = uses.single_use(value, "Mul")
    if scaled is None:
        return None, 1.0
    for inner, factor in either_way(scaled):
        by = values_of(factor) if factor.shape == () else None
        product = None if by is None else uses.single_use(inner, "MatMul", "Gemm")
        if product is None or by is None or product.input(2) is not None:
            continue
        if product.attributes.get("alpha", 1.0) == 1:
            return product, float(by)
    return None, 1.0


def _fits(addend: Value, product: Value) -> bool:
    """Whether something broadcasts to a matrix without making that larger."""
    own, whole = addend.shape, product.shape
    if own is None or whole is None or len(own) > len(whole):
        return False
    dims = zip(reversed(own), reversed(whole), strict=False)
    return all(dim == 1 or (dim == wide and not isinstance(dim, Interval)) for dim, wide in dims)
