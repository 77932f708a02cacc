"""Operators of onnxruntime's own domain, com.microsoft, with a counterpart in ONNX. They differ in
the name or in few details (onnxruntime's ContribOperators). Attributes have their values from the
file."""

from typing import NoReturn

from bridge.operators import Builder, Node, Refused, Result, legalizes, required


@legalizes(
    "com.microsoft::QuantizeLinear", "com.microsoft::DequantizeLinear", "com.microsoft::GatherND",
    "com.microsoft::Inverse", target="ir",
)  # fmt: skip
def standard_one(b: Builder, node: Node) -> Result:
    """`com.microsoft::QuantizeLinear`, DequantizeLinear, GatherND and Inverse (1): the standard's
    operators, unchanged."""
    return b.op(node.op.partition("::")[2], *node.inputs, **node.attributes)


@legalizes("com.microsoft::SampleOp", target="ir")
def sample(b: Builder, node: Node) -> Result:
    """`com.microsoft::SampleOp` (1): Identity."""
    return b.op("Identity", *node.inputs)


@legalizes("com.microsoft::Trilu", target="ir")
def trilu(b: Builder, node: Node) -> Result:
    """`com.microsoft::Trilu` (1): the standard's operator; `upper` is a number."""
    return b.op("Trilu", *node.inputs, upper=bool(node.attributes.get("upper", 1)))


@legalizes("com.microsoft::Range", target="ir")
def range_(b: Builder, node: Node) -> Result:
    """`com.microsoft::Range` (1): the bounds may be vectors of one element, and the step may be
    absent."""
    start, limit = required(node, 0, 1)
    delta = node.input(2)
    step = b.like(1, start) if delta is None else b.scalar(delta)
    return b.op("Range", b.scalar(start), b.scalar(limit), step)


@legalizes("com.microsoft::Unique", target="ir")
def unique(b: Builder, node: Node) -> Result:
    """`com.microsoft::Unique` (1): the elements in order of occurrence, without the indices of
    their first occurrence."""
    y, _, inverse, counts = b.ops("Unique", 4, node.inputs[0], sorted=False)
    return [y, inverse, counts][: len(node.outputs)]


@legalizes("com.microsoft::ExpandDims", target="ir")
def expand_dims(b: Builder, node: Node) -> Result:
    """`com.microsoft::ExpandDims` (1): Unsqueeze with one axis."""
    data, axis = required(node, 0, 1)
    return b.op("Unsqueeze", data, b.vector(axis))


@legalizes("com.microsoft::Pad", target="ir")
def pad(b: Builder, node: Node) -> Result:
    """`com.microsoft::Pad` (1): the pads may be a matrix of one row, and the value a vector of one
    element."""
    data, pads = required(node, 0, 1)
    value = node.input(2)
    fill = None if value is None else b.scalar(value)
    return b.op("Pad", data, b.vector(pads), fill, mode=node.attributes.get("mode", "constant"))


@legalizes("com.microsoft::GridSample", target="ir")
def grid_sample(b: Builder, node: Node) -> Result:
    """`com.microsoft::GridSample` (1): the standard's operator with the mode names of operator set
    16."""
    attributes = node.attributes
    mode = attributes.get("mode", "bilinear")
    return b.op(
        "GridSample", *node.inputs,
        align_corners=bool(attributes.get("align_corners", 0)),
        mode={"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
        padding_mode=attributes.get("padding_mode", "zeros"),
    )  # fmt: skip


@legalizes("com.microsoft::CDist", target="ir")
def cdist(b: Builder, node: Node) -> Result:
    """`com.microsoft::CDist` (1): distances between the rows of two matrices. The formula is |x -
    y|^2 = |x|^2 + |y|^2 - 2 x y."""
    left, right = required(node, 0, 1)
    metric = node.attributes.get("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise Refused(f"the metric must be euclidean or sqeuclidean, not {metric}")
    last = b.constant([1])
    lengths = b.op("ReduceSumSquare", left, last, keepdims=True)
    others = b.op("ReduceSumSquare", right, last, keepdims=False)
    product = b.op("MatMul", left, right, transpose_b=True) * -2
    squares = b.op("Relu", lengths + others + product)
    return b.op("Sqrt", squares) if metric == "euclidean" else squares


_BLOCKED = (
    "com.microsoft.nchwc::AveragePool", "com.microsoft.nchwc::Conv",
    "com.microsoft.nchwc::GlobalAveragePool", "com.microsoft.nchwc::GlobalMaxPool",
    "com.microsoft.nchwc::MaxPool", "com.microsoft.nchwc::ReorderInput",
    "com.microsoft.nchwc::ReorderOutput", "com.microsoft.nchwc::Upsample",
)  # fmt: skip


@legalizes(*_BLOCKED, target="ir")
def blocked_channels(b: Builder, node: Node) -> NoReturn:
    """Conv, MaxPool and similar operators of com.microsoft.nchwc. Their channels are in blocks of
    the size that one processor prefers, and the file does not have this size."""
    raise Refused(
        "it is made for one kind of processor; save the model with onnxruntime's graph "
        "optimisations up to ORT_ENABLE_EXTENDED"
    )


@legalizes("com.microsoft::EPContext", target="ir")
def compiled_context(b: Builder, node: Node) -> NoReturn:
    """`com.microsoft::EPContext` (1): what an execution provider compiled, in the form of one
    device."""
    if name := named_ir(node):
        raise Refused(f"its model is the IR {name} beside the file; convert that")
    source, model = (node.attributes.get(key) for key in ("source", "onnx_model_filename"))
    raise Refused(
        f"it holds what {source or 'an execution provider'} compiled for a device, and no "
        f"operators; convert the model that it was made of{f', {model}' if model else ''}"
    )


def named_ir(node: Node) -> str:
    """The IR beside the file that a `com.microsoft::EPContext` names, "" if it names none."""
    name = str(node.attributes.get("ep_cache_context", ""))
    is_context = node.op == "com.microsoft::EPContext" and not node.attributes.get("embed_mode", 1)
    return name if is_context and name.lower().endswith(".xml") else ""
