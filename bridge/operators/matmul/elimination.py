"""Det of ONNX and Inverse of IR: Gaussian elimination with partial pivoting, as a Loop."""

from bridge.neutral.types import BF16, F16, F32, Element
from bridge.operators import Builder, Node, Result, Value, legalizes
from bridge.operators.bodies import Values, along


@legalizes("Det", target="ir")
def det_to_ir(b: Builder, node: Node) -> Result:
    """Det (11 to 22): the product of the pivots, with the sign of the permutation of rows."""
    x = node.operand(0)
    matrix = b.cast(x, _computed(x.known_element))
    rows = b.positions(matrix, -1)
    unused = _ones(b, matrix)

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        matrix, unused, det = states
        column = b.op("Gather", matrix, parts[0], -1)
        index, chosen = _pivot(b, column, unused, fixed[0])
        pivot = _sum(b, column * chosen, keepdims=True)
        row = _row(b, matrix, chosen)
        earlier = b.cast(fixed[0] < index, unused.element)
        skipped = _sum(b, unused * earlier, keepdims=False)
        odd = b.op("Mod", skipped, 2, fmod=True)
        sign = b.like(1, odd) - odd * 2
        det *= b.squeeze(pivot, -1) * sign
        unused -= chosen
        factors = _divided(b, column, pivot) * unused
        return [matrix - _outer(b, factors, row), unused, det], []

    start = b.op("ReduceProd", unused, [-1], keepdims=False)
    (_, _, det), _ = along(b, step, [rows], [matrix, unused, start], [rows])
    return b.cast(det, x.element)


@legalizes("Inverse", target="onnx")
def inverse_to_onnx(b: Builder, node: Node) -> Result:
    """Inverse-14: the right half of [A | I] when the left half is a permuted identity."""
    x = node.operand(0)
    rank = b.known(x.rank, "the rank of its input")
    matrix = b.cast(x, _computed(x.known_element))
    size = b.sizes(matrix, -1)
    rows = b.positions(matrix, -1)
    identity = b.cast(b.unsqueeze(rows, 1).equal(rows), matrix.element)
    identity = b.op("Expand", identity, b.op("Shape", matrix))
    zeros = identity - identity

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        matrix, unused, order = states
        column = b.op("Gather", matrix, parts[0], -1)
        _, chosen = _pivot(b, column, unused, fixed[0])
        pivot = _sum(b, column * chosen, keepdims=True)
        row = _divided(b, _row(b, matrix, chosen), pivot)
        # The pivot's row becomes `row`, and a multiple of it is subtracted from the other rows.
        matrix -= _outer(b, column - chosen, row)
        place = b.cast(fixed[0].equal(parts[0]), unused.element)
        order += _outer(b, place, chosen)
        return [matrix, unused - chosen, order], []

    states = [b.concat(-1, matrix, identity), _ones(b, matrix), zeros]
    (matrix, _, order), _ = along(b, step, [rows], states, [rows])
    right = b.cut(matrix, -1, size, size + size)
    inverse = b.op("MatMul", order, right)
    if node.attributes["adjoint"]:
        inverse = b.swap_last(inverse, rank)
    return b.cast(inverse, x.element)


def _computed(element: Element) -> Element:
    return F32 if element in (F16, BF16) else element


def _ones(b: Builder, matrix: Value) -> Value:
    """Ones [..., n] for matrices [..., n, n]. They mark the rows without a pivot."""
    dims = b.op("Shape", matrix, end=-1)
    return b.op("Expand", b.like(1, matrix), dims)


def _pivot(b: Builder, column: Value, unused: Value, rows: Value) -> tuple[Value, Value]:
    """The unused row [..., 1] with the largest element of a column [..., n], and its one-hot vector
    [..., n]."""
    rated = abs(column) * unused - (1 - unused)
    index = b.op("ArgMax", rated, axis=-1, keepdims=True)
    return index, b.cast(rows.equal(index), column.element)


def _row(b: Builder, matrix: Value, chosen: Value) -> Value:
    return b.op("ReduceSum", matrix * b.unsqueeze(chosen, -1), [-2], keepdims=False)


def _sum(b: Builder, x: Value, keepdims: bool) -> Value:
    return b.op("ReduceSum", x, [-1], keepdims=keepdims)


def _divided(b: Builder, x: Value, pivot: Value) -> Value:
    """`x` divided by the pivot. The pivot of a singular matrix is 0 and does not divide."""
    return x / b.where(pivot.equal(0), 1, pivot)


def _outer(b: Builder, column: Value, row: Value) -> Value:
    """Products [..., n, m] of [..., n] and [..., m]."""
    return b.unsqueeze(column, -1) * b.unsqueeze(row, -2)
