"""IR's SparseFillEmptyRows."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, BOOL, TensorType, Type
from bridge.operators import Result, legalizes
from bridge.operators.builder_helpers import (
    as_i64,
    cast,
    concat,
    expand,
    given,
    reshape,
    scalar,
    sizes,
    split,
    take,
    unsqueeze,
)


@legalizes("SparseFillEmptyRows", target="onnx")
def sparse_fill_empty_rows_to_onnx(b: Builder, node: Node) -> Result:
    """SparseFillEmptyRows-16: rows without a value get the default one in column 0; all are sorted
    by row and column."""
    values, dims, indices, default = given(node, 0, 1, 2, 3)
    places = as_i64(b, indices)
    height, width = split(b, as_i64(b, dims), 0, 1, 1)
    used = b.op("Expand", b.constant(False), sizes(b, values, 0))
    empty = b.op("ScatterND", expand(b, b.constant(True), height), take(b, places, 1, 0), used)
    rows = b.op("Range", b.constant(0), scalar(b, height), b.constant(1))
    rows = unsqueeze(b, b.op("Compress", rows, empty, axis=0), 1)
    places = concat(b, 0, places, concat(b, 1, rows, b.op("Mul", rows, b.constant(0))))
    filled = concat(b, 0, values, expand(b, reshape(b, default, 1), sizes(b, rows, 0)))
    row, column = (reshape(b, v, -1) for v in split(b, places, 1, 1, 1))
    key = b.op("Add", b.op("Mul", row, width), column)
    _, order = b.ops("TopK", 2, key, sizes(b, key, 0), axis=0, largest=False, sorted=True)
    places, filled = (b.op("Gather", v, order, b.constant(0)) for v in (places, filled))
    return cast(b, places, indices.element), filled, empty


@infers("SparseFillEmptyRows")
def infer_sparse_fill_empty_rows(node: Node) -> list[Type]:
    """SparseFillEmptyRows: indices [n, 2], values [n], and a flag for each row."""
    known = integers(node.inputs[1])
    return [
        TensorType(first(node, 2).element, (ANY, 2)),
        TensorType(first(node).element, (ANY,)),
        TensorType(BOOL, (known[0] if known else ANY,)),
    ]
