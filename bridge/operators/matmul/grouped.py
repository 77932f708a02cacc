"""IR's GroupedMatMul, used in mixtures of experts."""

from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, required
from bridge.operators.bodies import Values, along


@legalizes("GroupedMatMul", target="onnx")
def grouped_matmul_to_onnx(b: Builder, node: Node) -> Result:
    """GroupedMatMul-17: products of matrices with transposed second matrices (as in OpenVINO). If
    one tensor holds all first matrices, `offsets` are the ends of their rows. A Loop then visits
    the matrices that have rows."""
    x, weights = required(node, 0, 1)
    both = tuple(ranks(node, 0, 1))
    if both == (3, 3):
        return b.op("MatMul", x, weights, transpose_a=False, transpose_b=True)
    if both != (2, 3):
        raise Refused(f"its inputs must have the ranks (2, 3) or (3, 3), not {both}")

    def step(b: Builder, parts: Values, states: Values, fixed: Values) -> tuple[Values, Values]:
        number, start, end = b.split(parts[0], 0, 1, 1, 1)
        x, weights = fixed
        matrix = b.op("Gather", weights, b.scalar(number), 0)
        rows = x[start:end]
        result = b.op("MatMul", rows, matrix, transpose_a=False, transpose_b=True)
        place = b.op("Range", b.scalar(start), b.scalar(end), 1)
        return [b.op("ScatterND", states[0], b.unsqueeze(place, 1), result)], []

    groups = _groups_with_rows(b, b.as_i64(node.operand(2)))
    start = b.zeros(x, b.sizes(x, 0), b.sizes(weights, 1))
    (result,), _ = along(b, step, [groups], [start], [x, weights])
    return result


def _groups_with_rows(b: Builder, offsets: Value) -> Value:
    """The number of each group with rows, its first row and the end of its rows, [n, 3]."""
    starts = b.concat(0, b.constant([0]), offsets[:-1])
    columns = (b.unsqueeze(v, 1) for v in (b.positions(offsets, 0), starts, offsets))
    return b.op("Compress", b.concat(1, *columns), starts < offsets, axis=0)
