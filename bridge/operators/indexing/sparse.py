"""IR's SparseFillEmptyRows."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, BOOL, TensorType, Type
from bridge.operators import Result, legalizes
from bridge.operators.builder_helpers import required


@legalizes("SparseFillEmptyRows", target="onnx")
def sparse_fill_empty_rows_to_onnx(b: Builder, node: Node) -> Result:
    """SparseFillEmptyRows-16: rows without a value get the default one in column 0; all are sorted
    by row and column."""
    values, dims, indices, default = required(node, 0, 1, 2, 3)
    places = b.as_i64(indices)
    height, width = b.split(b.as_i64(dims), 0, 1, 1)
    used = b.op("Expand", b.constant(False), b.sizes(values, 0))
    empty = b.op("ScatterND", b.expand(b.constant(True), height), b.take(places, 1, 0), used)
    rows = b.op("Range", b.constant(0), b.scalar(height), b.constant(1))
    rows = b.unsqueeze(b.op("Compress", rows, empty, axis=0), 1)
    places = b.concat(0, places, b.concat(1, rows, b.op("Mul", rows, b.constant(0))))
    filled = b.concat(0, values, b.expand(b.reshape(default, 1), b.sizes(rows, 0)))
    row, column = (b.reshape(v, -1) for v in b.split(places, 1, 1, 1))
    key = b.op("Add", b.op("Mul", row, width), column)
    _, order = b.ops("TopK", 2, key, b.sizes(key, 0), axis=0, largest=False, sorted=True)
    places, filled = (b.op("Gather", v, order, b.constant(0)) for v in (places, filled))
    return b.cast(places, indices.element), filled, empty


@infers("SparseFillEmptyRows")
def infer_sparse_fill_empty_rows(node: Node) -> list[Type]:
    """SparseFillEmptyRows: indices [n, 2], values [n], and a flag for each row."""
    known = integers(node.inputs[1])
    return [
        TensorType(first(node, 2).element, (ANY, 2)),
        TensorType(first(node).element, (ANY,)),
        TensorType(BOOL, (known[0] if known else ANY,)),
    ]
