"""MatMul, MatMulInteger. ONNX has no MatMul with transposition, and IR has no integer MatMul with
zero points."""

from bridge.neutral.inference import constraints as must, first, infers, require
from bridge.neutral.types import BF16, F16, F32, F64, I32, Shape, TensorType, broadcast
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required

GEMM = (F32, F16, F64, BF16)


@legalizes("MatMul", target="onnx")
def transposing_matmul_to_onnx(b: Builder, node: Node) -> Result:
    """MatMul with transposition as Gemm for two float matrices, otherwise as Transpose and MatMul.
    1-D operands are not transposed (MatMul-1 of IR)."""
    flags = node.attributes
    transpose_a, transpose_b = flags["transpose_a"], flags["transpose_b"]
    if not transpose_a and not transpose_b:
        return None
    x, y = required(node, 0, 1)
    if x.rank == 2 and y.rank == 2 and x.element in GEMM:
        return b.op("Gemm", x, y, transA=transpose_a, transB=transpose_b)
    left = _transposed(b, x) if transpose_a else x
    right = _transposed(b, y) if transpose_b else y
    return b.op("MatMul", left, right)


def _transposed(b: Builder, x: Value) -> Value:
    if x.rank is None:
        raise Refused("it transposes an operand of unknown rank; give the model's inputs shapes")
    return x if x.rank < 2 else b.swap_last(x, x.rank)


@legalizes("MatMulInteger", target="ir")
def matmul_integer_to_ir(b: Builder, node: Node) -> Result:
    """MatMulInteger-10: MatMul of 32-bit integers minus their zero points. A vector of zero points
    has one element per row of A, or per column of B."""
    a, c = required(node, 0, 1)
    a_zero, c_zero = node.input(2), node.input(3)
    left, right = b.cast(a, I32), b.cast(c, I32)
    if a_zero is not None:
        zero = b.unsqueeze(a_zero, 1) if a_zero.rank == 1 else a_zero
        left -= b.cast(zero, I32)
    if c_zero is not None:
        right -= b.cast(c_zero, I32)
    return b.op("MatMul", left, right)


def product(a: Shape, b: Shape) -> Shape:
    """The shape of a matrix product (numpy's matmul)."""
    if a is None or b is None:
        return None
    require(len(a) > 0 and len(b) > 0)
    left = (1, *a) if len(a) == 1 else a
    right = (*b, 1) if len(b) == 1 else b
    batch = broadcast(left[:-2], right[:-2])
    if batch is None:
        return None
    rows = () if len(a) == 1 else (left[-2],)
    columns = () if len(b) == 1 else (right[-1],)
    return (*batch, *rows, *columns)


def swapped(shape: Shape, swap: bool) -> Shape:
    """A shape with its last two axes exchanged, if `swap` is true and it has two axes."""
    if not swap or shape is None or len(shape) < 2:
        return shape
    return (*shape[:-2], shape[-1], shape[-2])


@infers("MatMul")
def infer_matmul(node: Node) -> list[TensorType]:
    """MatMul: numpy's matmul, of matrices as they are or transposed."""
    a, b = first(node), first(node, 1)
    flags = node.attributes
    shape = product(
        swapped(a.shape, flags.get("transpose_a", False)),
        swapped(b.shape, flags.get("transpose_b", False)),
    )
    return [TensorType(a.element or b.element, shape)]


def inner_sizes(node: Node) -> must.Constraints:
    """MatMul: A has as many columns as B has rows, each as it is or transposed."""
    a, b = must.operands(node, 2)
    transposed = node.attributes.get("transpose_a") and a.rank != 1
    rows = -1 if node.attributes.get("transpose_b") or b.rank == 1 else -2
    yield must.Same(a[-2 if transposed else -1], b[rows], "{} and {} cannot be multiplied", a, b)


must.hold("MatMul", inner_sizes)
