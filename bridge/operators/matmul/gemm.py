"""Gemm: alpha * A' * B' + beta * C. IR has MatMul, Multiply and Add."""

from __future__ import annotations

from bridge.neutral.inference import constraints as must, first, infers, require
from bridge.neutral.types import ANY, F32, TensorType
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.matmul.matmul import swapped


@legalizes("Gemm", target="ir")
def gemm_to_ir(b: Builder, node: Node) -> Result:
    """Gemm (1 to 13): a scaled MatMul plus a scaled C."""
    x, y = required(node, 0, 1)
    c, flags = node.input(2), node.attributes
    product = b.op("MatMul", x, y, transpose_a=flags["transA"], transpose_b=flags["transB"])
    product = _scaled(b, product, flags["alpha"])
    if c is None or flags["beta"] == 0:
        return product
    return product + _scaled(b, c, flags["beta"])


def _scaled(b: Builder, x: Value, factor: float) -> Value:
    if factor == 1:
        return x
    if x.element is not None and x.element.is_integer and factor != int(factor):
        return b.op("Cast", b.op("Cast", x, to=F32) * float(factor), to=x.element)
    return x * factor


@infers("Gemm")
def infer_gemm(node: Node) -> list[TensorType]:
    """Gemm: rows of A, columns of B, both as they are or transposed."""
    a, b = first(node), first(node, 1)
    require(a.rank in (None, 2) and b.rank in (None, 2))
    left = swapped(a.shape, node.attributes["transA"])
    right = swapped(b.shape, node.attributes["transB"])
    shape = (left[0] if left else ANY, right[1] if right else ANY)
    return [TensorType(a.element or b.element, shape)]


def inner_sizes(node: Node) -> must.Constraints:
    """Gemm: two matrices. A has as many columns as B has rows."""
    a, b = must.operands(node, 2)
    for matrix in (a, b):
        yield must.Rank(matrix, 2, "{} and {} are no matrices", a, b)
    columns = a[0 if node.attributes["transA"] else 1]
    rows = b[1 if node.attributes["transB"] else 0]
    yield must.Same(columns, rows, "{} and {} cannot be multiplied", a, b)


must.hold("Gemm", inner_sizes)
