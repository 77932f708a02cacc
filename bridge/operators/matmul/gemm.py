"""Gemm: alpha * A' * B' + beta * C. IR has MatMul, Multiply and Add."""

from bridge.neutral.inference import constraints as must, first, infers
from bridge.neutral.types import ANY, F32, TensorType
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.matmul.matmul import swapped


@legalizes("Gemm", target="ir")
def gemm_to_ir(b: Builder, node: Node) -> Result:
    """Gemm (1 to 13): a scaled MatMul plus a scaled C. Fractions of integers become integers at the
    end, as in the standard's reference."""
    x, y = required(node, 0, 1)
    c, flags = node.input(2), node.attributes
    product = b.op("MatMul", x, y, transpose_a=flags["transA"], transpose_b=flags["transB"])
    element, c = product.element, None if flags["beta"] == 0 else c
    factors = (flags["alpha"], 1 if c is None else flags["beta"])
    if element is not None and element.is_integer and any(f != int(f) for f in factors):
        product, c = b.cast(product, F32), c and b.cast(c, F32)
    product = _scaled(product, factors[0])
    made = product if c is None else product + _scaled(c, factors[1])
    return b.cast(made, element)


def _scaled(x: Value, factor: float) -> Value:
    return x if factor == 1 else x * factor


@infers("Gemm")
def infer_gemm(node: Node) -> list[TensorType]:
    """Gemm: rows of A, columns of B, both as they are or transposed."""
    a, b = first(node), first(node, 1)
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
