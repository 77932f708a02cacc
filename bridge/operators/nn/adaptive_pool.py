"""IR's adaptive pooling: a given number of windows that cover the input and may overlap."""

from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F32, is_static
from bridge.operators import Builder, Node, Result, Value, legalizes, ranks, required


def _whole_windows(data: Value, outputs: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The sizes of the windows, if the size of each axis is a multiple of its number of windows."""
    spatial = None if data.shape is None else data.shape[2:]
    if outputs is None or not is_static(spatial) or len(spatial) != len(outputs):
        return None
    parts = [divmod(dim, count) for dim, count in zip(spatial, outputs, strict=True)]
    return None if any(rest for _, rest in parts) else tuple(size for size, _ in parts)


def _membership(b: Builder, data: Value, axis: int, count: Value) -> Value:
    """A matrix of the positions (columns) along `axis` in each window (row). Window i begins at
    floor(i * size / count) and ends before ceil((i + 1) * size / count)."""
    length, one = b.size(data, axis), b.constant(1)
    window = b.op("Range", 0, count, one)
    start = window * length / count
    end = ((window + one) * length + (count - one)) / count
    place = b.positions(data, axis)
    return (place >= b.unsqueeze(start, 1)) & (place < b.unsqueeze(end, 1))


@legalizes("AdaptiveAvgPool", target="onnx")
def adaptive_avg_pool_to_onnx(b: Builder, node: Node) -> Result:
    """AdaptiveAvgPool-8: for uneven windows, a matrix product along each axis."""
    data, output = required(node, 0, 1)
    outputs, rank = known_of(output).ints, ranks(node, 0)[0]
    if outputs is not None and all(count == 1 for count in outputs):
        return b.op("ReduceMean", data, list(range(2, rank)), keepdims=True)
    window = _whole_windows(data, outputs)
    if window is not None:
        return b.op("AveragePool", data, kernel_shape=window, strides=window)
    element, y = data.element, b.cast(data, F32)
    for axis in range(2, rank):
        covered = _membership(b, data, axis, b.scalar(b.take(b.as_i64(output), 0, axis - 2)))
        weights = b.cast(covered, F32)
        weights /= b.op("ReduceSum", weights, [1], keepdims=True)
        order = [i for i in range(rank) if i != axis]
        y = b.op("MatMul", b.transpose(y, *order, axis), b.transpose(weights, 1, 0))
        y = b.transpose(y, *range(axis), rank - 1, *range(axis, rank - 1))
    return b.cast(y, element)


@legalizes("AdaptiveMaxPool", target="onnx")
def adaptive_max_pool_to_onnx(b: Builder, node: Node) -> Result:
    """AdaptiveMaxPool-8. Indices count within one channel. For uneven windows, it computes the
    maxima axis by axis, with the windows in a new axis."""
    data, output = required(node, 0, 1)
    outputs, rank = known_of(output).ints, ranks(node, 0)[0]
    index_element = node.attributes["index_element_type"]
    window = _whole_windows(data, outputs)
    if window is not None:
        return b.ops(
            "MaxPool", 2, data, kernel_shape=window, strides=window, axis=2,
            index_element_type=index_element,
        )  # fmt: skip
    y, indices = data, b.op("Expand", b.constant(0), b.op("Shape", data))
    stride = b.constant(1)
    for axis in reversed(range(2, rank)):
        covered = _membership(b, data, axis, b.scalar(b.take(b.as_i64(output), 0, axis - 2)))
        covered = b.unsqueeze(covered, *range(2, rank - axis + 1)) if axis + 1 < rank else covered
        masked = b.where(covered, b.unsqueeze(y, axis), float("-inf"))
        y = b.op("ReduceMax", masked, [axis + 1], keepdims=False)
        best = b.op("ArgMax", masked, axis=axis + 1, keepdims=True)
        wide = b.op("Expand", b.unsqueeze(indices, axis), b.op("Shape", masked))
        inner = b.squeeze(b.op("GatherElements", wide, best, axis=axis + 1), axis + 1)
        indices = inner + b.squeeze(best, axis + 1) * stride
        stride *= b.size(data, axis)
    return y, b.cast(indices, index_element)
