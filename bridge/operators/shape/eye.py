"""Eye, EyeLike and Trilu: matrices that depend on the distance from the diagonal."""

from bridge.neutral.inference import constraints as must
from bridge.neutral.types import BOOL, STRING
from bridge.operators import Builder, Node, Refused, Value, legalizes, ranked, required


@legalizes("EyeLike", target="ir")
def eye_like_for_ir(b: Builder, node: Node) -> Value:
    """EyeLike-9, which IR lacks: a comparison of row and column numbers."""
    x = node.operand(0)
    element = node.attributes["dtype"] or x.element
    rows, columns = b.size(x, 0), b.size(x, 1)
    return b.op("Cast", _diagonal(b, rows, columns, b.constant(node.attributes["k"])), to=element)


@legalizes("Eye", target="onnx")
def eye_for_onnx(b: Builder, node: Node) -> Value:
    """Eye-9: ones on the diagonal with `column - row` equal to its number, for every matrix of a
    batch."""
    rows, columns, k = (b.scalar(b.as_i64(v)) for v in required(node, 0, 1, 2))
    batch = node.input(3)
    matrix = b.op("Cast", _diagonal(b, rows, columns, k), to=node.attributes["output_type"])
    if batch is None:
        return matrix
    sides = b.concat(0, b.reshape(rows, 1), b.reshape(columns, 1))
    return b.op("Expand", matrix, b.concat(0, b.as_i64(batch), sides))


def _diagonal(b: Builder, rows: Value, columns: Value, k: Value) -> Value:
    return _distance(b, rows, columns).equal(k)


def _distance(b: Builder, rows: Value, columns: Value) -> Value:
    """The difference column - row for every element of a matrix, i64."""
    zero, one = b.constant(0), b.constant(1)
    row = b.op("Range", zero, rows, one)
    return b.op("Range", zero, columns, one) - b.unsqueeze(row, 1)


@legalizes("Trilu", target="ir")
@legalizes("Trilu", target="onnx")
def trilu(b: Builder, node: Node) -> Value | None:
    """Trilu-14: keeps the elements on one side of a diagonal. ONNX has it since operator set 14."""
    if b.opset >= 14:
        return None
    x, k = node.operand(0), node.input(1)
    if x.element is STRING:
        raise Refused("for strings it exists only since operator set 14, and not in OpenVINO")
    ranked(node)
    if 0 in x.dims:
        return b.op("Identity", x)
    diagonal = b.constant(0) if k is None else b.scalar(k)
    side = "GreaterOrEqual" if node.attributes["upper"] else "LessOrEqual"
    keep = b.op(side, _distance(b, b.size(x, -2), b.size(x, -1)), diagonal)
    if x.element is BOOL:
        return x & keep
    return b.where(keep, x, 0)


must.hold("EyeLike", must.has_rank(2, 2))
must.hold("Trilu", must.has_rank(2))
