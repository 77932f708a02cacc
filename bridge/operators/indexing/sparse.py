"""IR's SparseFillEmptyRows."""

from bridge.operators import Builder, Node, Result, legalizes, required


@legalizes("SparseFillEmptyRows", target="onnx")
def sparse_fill_empty_rows_to_onnx(b: Builder, node: Node) -> Result:
    """SparseFillEmptyRows-16: a row without a value gets the default value in column 0. All values
    are sorted by row and column."""
    values, dims, indices, default = required(node, 0, 1, 2, 3)
    places = b.as_i64(indices)
    height, width = b.split(b.as_i64(dims), 0, 1, 1)
    used = b.op("Expand", b.constant(False), b.sizes(values, 0))
    empty = b.op("ScatterND", b.expand(b.constant(True), height), b.take(places, 1, 0), used)
    rows = b.op("Range", b.constant(0), b.scalar(height), 1)
    rows = b.unsqueeze(b.op("Compress", rows, empty, axis=0), 1)
    places = b.concat(0, places, b.concat(1, rows, rows * 0))
    filled = b.concat(0, values, b.expand(b.reshape(default, 1), b.sizes(rows, 0)))
    row, column = (b.reshape(v, -1) for v in b.split(places, 1, 1, 1))
    key = row * width + column
    _, order = b.ops("TopK", 2, key, b.sizes(key, 0), axis=0, largest=False)
    places, filled = (b.op("Gather", v, order, 0) for v in (places, filled))
    return b.cast(places, indices.element), filled, empty
