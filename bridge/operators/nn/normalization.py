"""Batch, instance, layer, group, response and Lp normalisation.

IR's MVN subtracts the mean over axes and divides by the deviation. Most normalisations of ONNX
become an MVN, a scale and a bias.
"""

from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import constraints as must, first, infers
from bridge.neutral.types import (
    BF16,
    BY_ONNX,
    F16,
    F32,
    Shape,
    TensorType,
    Type,
    differ,
    format_shape,
)
from bridge.operators import Builder, Refused, Result, legalizes, ranks, reads, required
from bridge.vocabulary import operator


def _along_channels(b: Builder, vector: Value, rank: int) -> Value:
    return b.reshape(vector, 1, -1, *(1,) * (rank - 2))


@reads("BatchNormalization", format="onnx", until=13)
def read_batch_normalization(b: Builder, node: Node) -> Result:
    """BatchNormalization (1 to 13). Before operator set 14, more outputs meant training. Before
    operator set 9, statistics could be per activation (`spatial` = 0)."""
    if len(node.outputs) > 1:
        raise Refused("training outputs of BatchNormalization before operator set 14; export anew")
    if node.attributes.get("spatial", 1):
        return None
    data, scale, bias, mean, variance = required(node, 0, 1, 2, 3, 4)
    epsilon = b.like(node.attributes.get("epsilon", 1e-5), variance)
    deviation = b.op("Sqrt", variance + epsilon)
    return (data - mean) / deviation * scale + bias


@legalizes("BatchNormalization", target="ir")
def batch_normalization_to_ir(b: Builder, node: Node) -> Result:
    """BatchNormalization (14 to 15). IR's BatchNormInference-5 requires one type and has no
    training."""
    data, *parameters = node.operands
    attributes = node.attributes
    if attributes["training_mode"]:
        return _batch_normalization_in_training(b, node)
    plain = {"epsilon": attributes["epsilon"]}
    if not plain["epsilon"] >= 0:
        raise Refused(f"its epsilon is {plain['epsilon']}, but OpenVINO accepts no negative one")
    if len({v.element for v in (data, *parameters)}) > 1:
        wide = [b.cast(v, F32) for v in (data, *parameters)]
        return b.cast(b.op("BatchNormalization", *wide, **plain), data.element)
    row = operator(node.op)
    assert row is not None
    if attributes == {**row.defaults, **plain}:
        return None
    return b.op("BatchNormalization", data, *parameters, **plain)


@legalizes("BatchNormalization", target="onnx")
def batch_normalization_to_older_onnx(b: Builder, node: Node) -> Result:
    """BatchNormalization (1 to 15): before operator set 14, training has another form."""
    if b.opset >= 14 or not node.attributes["training_mode"]:
        return None
    return _batch_normalization_in_training(b, node)


def _batch_normalization_in_training(b: Builder, node: Node) -> list[Value]:
    """Normalises by the mean and the variance of the batch (BatchNormalization-15)."""
    data, scale, bias, mean, variance = node.operands
    x, *running = (b.cast(v, F32) for v in (data, mean, variance))
    axes = b.constant([i for i in range(ranks(node, 0)[0]) if i != 1])
    current = b.op("ReduceMean", x, axes, keepdims=True)
    centered = x - current
    spread = b.op("ReduceMean", centered * centered, axes, keepdims=False)
    current = b.op("Squeeze", current, axes)
    parameters = [b.cast(v, F32) for v in (scale, bias)]
    epsilon, momentum = node.attributes["epsilon"], node.attributes["momentum"]
    y = b.op("BatchNormalization", x, *parameters, current, spread, epsilon=epsilon)
    blended = []
    for old, new in zip(running, (current, spread), strict=True):
        blended.append(b.cast(old * momentum + new * (1.0 - momentum), mean.element))
    return [b.cast(y, data.element), *blended][: len(node.outputs)]


@legalizes("InstanceNormalization", target="ir")
def instance_normalization_to_ir(b: Builder, node: Node) -> Result:
    """InstanceNormalization (1 to 22): an MVN, then a scale and a bias for each channel."""
    data, scale, bias = required(node, 0, 1, 2)
    rank = ranks(node, 0)[0]
    y = _normalized(b, data, b.constant(list(range(2, rank))), node.attributes["epsilon"])
    return y * _along_channels(b, scale, rank) + _along_channels(b, bias, rank)


def _normalized(b: Builder, data: Value, axes: Value, epsilon: float) -> Value:
    return b.op("MVN", data, axes, eps=epsilon, eps_mode="INSIDE_SQRT", normalize_variance=True)


@legalizes("LayerNormalization", target="ir")
def layer_normalization_to_ir(b: Builder, node: Node) -> Result:
    """LayerNormalization-17, which IR lacks: an MVN, a scale and a bias. Statistics are computed if
    the node has these outputs."""
    data, scale = required(node, 0, 1)
    axes = b.constant(axes_from(node))
    epsilon = node.attributes["epsilon"]
    wide = b.cast(data, F32) if data.element in (F16, BF16) else data
    if len(node.outputs) == 1:
        y = b.cast(_normalized(b, wide, axes, epsilon), data.element)
        statistics: list[Value] = []
    else:
        mean = b.op("ReduceMean", wide, axes, keepdims=True)
        centered = wide - mean
        spread = b.op("ReduceMean", centered * centered, axes, keepdims=True)
        inverse = 1.0 / b.op("Sqrt", spread + epsilon)
        y = b.cast(centered * inverse, data.element)
        statistics = [b.cast(v, node.attributes["stash_type"]) for v in (mean, inverse)]
    y = b.plus(y * scale, node.input(2))
    return [y, *statistics][: len(node.outputs)]


@legalizes("RMSNormalization", target="ir")
def rms_normalization_to_ir(b: Builder, node: Node) -> Result:
    """RMSNormalization-23: the standard's function body without casts that have no effect."""
    data, scale = required(node, 0, 1)
    wide = b.cast(data, node.attributes["stash_type"])
    root = root_mean_square(b, wide, axes_from(node), node.attributes["epsilon"])
    return b.cast(wide / root, data.element) * scale


def axes_from(node: Node) -> list[int]:
    """The axes from the node's attribute `axis` to the last."""
    axis = node.attributes["axis"]
    return list(range(axis, 0) if axis < 0 else range(axis, ranks(node, 0)[0]))


def root_mean_square(b: Builder, x: Value, axes: list[int], epsilon: float) -> Value:
    """The root of the mean of the squares, with `epsilon` added to the mean."""
    mean = b.op("ReduceMean", x * x, axes, keepdims=True)
    return b.op("Sqrt", mean + epsilon)


@reads("MeanVarianceNormalization", format="onnx", until=8)
def read_experimental_normalization(b: Builder, node: Node) -> Value:
    """MeanVarianceNormalization-1, an experimental operator for images. It includes the channels or
    not, and it may leave out the variance (as in onnxruntime)."""
    x = node.operand(0)
    axes = (0, 1, 2, 3) if node.attributes.get("across_channels", 0) else (0, 2, 3)
    if node.attributes.get("normalize_variance", 1):
        return b.op("MeanVarianceNormalization", x, axes=axes)
    return x - b.op("ReduceMean", x, list(axes), keepdims=True)


@legalizes("MeanVarianceNormalization", target="ir")
def mean_variance_normalization_to_ir(b: Builder, node: Node) -> Result:
    """MeanVarianceNormalization (9 to 13) as MVN-6, with ONNX's epsilon outside the root."""
    axes = b.constant(list(node.attributes["axes"]))
    return b.op(
        "MVN", node.inputs[0], axes, eps=1e-9, eps_mode="OUTSIDE_SQRT", normalize_variance=True
    )


@reads("MVN", format="ir", until=5)
def read_mvn(b: Builder, node: Node) -> Result:
    """MVN-1 and MVN-2 have an attribute with the axes, or a flag for the channels."""
    attributes = node.attributes
    first = 1 if attributes["across_channels"] else 2
    axes = list(attributes["reduction_axes"]) or list(range(first, ranks(node, 0)[0]))
    return b.op(
        "MVN", node.inputs[0], axes, eps=attributes["eps"], eps_mode="INSIDE_SQRT",
        normalize_variance=attributes["normalize_variance"],
    )  # fmt: skip


@legalizes("MVN", target="onnx")
def mvn_to_onnx(b: Builder, node: Node) -> Result:
    """MVN-6 as explicit arithmetic, with its epsilon inside or outside the root."""
    data, axes = required(node, 0, 1)
    axes = b.as_i64(axes)
    y = data - b.op("ReduceMean", data, axes, keepdims=True)
    if not node.attributes["normalize_variance"]:
        return y
    variance = b.op("ReduceMean", y * y, axes, keepdims=True)
    epsilon = b.like(node.attributes["eps"], variance)
    if node.attributes["eps_mode"] == "INSIDE_SQRT":
        return y / b.op("Sqrt", variance + epsilon)
    return y / (b.op("Sqrt", variance) + epsilon)


@reads("GroupNormalization", format="onnx", since=18, until=20)
def read_group_normalization(b: Builder, node: Node) -> Result:
    """GroupNormalization (18 to 20). Operator set 18 has a scale and a bias for each group, and
    operator set 21 for each channel."""
    data, scale, bias = required(node, 0, 1, 2)
    groups = node.attributes["num_groups"]
    repeats = b.op("Reshape", b.size(data, 1) / groups, [1])

    def repeated(vector: Value) -> Value:
        if vector.rank not in (None, 1) or differ((vector.shape or (groups,))[0], groups):
            raise Refused(f"{format_shape(vector.shape)} are no factors for {groups} groups")
        return b.reshape(b.expand(b.reshape(vector, groups, 1), groups, repeats), -1)

    return b.op("GroupNormalization", data, repeated(scale), repeated(bias), **node.attributes)


@legalizes("GroupNormalization", target="ir")
def group_normalization_to_ir(b: Builder, node: Node) -> Result:
    """GroupNormalization (18 to 21). IR computes in f32, even if ONNX has a narrower stash_type.
    bf16 is also computed in f32."""
    data, *parameters = node.operands
    attributes = {**node.attributes, "stash_type": F32}
    if data.element is BF16:
        wide = [b.cast(v, F32) for v in (data, *parameters)]
        return b.cast(b.op("GroupNormalization", *wide, **attributes), BF16)
    if attributes == node.attributes:
        return None
    return b.op("GroupNormalization", *node.inputs, **attributes)


@legalizes("LRN", target="ir")
def lrn_to_ir(b: Builder, node: Node) -> Result:
    """LRN (1 to 13). IR has an input for the axes. In ONNX, a window of even size has its extra
    element on the right. IR has no such window, so that an average over rows of channels replaces
    it."""
    data, size = required(node, 0)[0], node.attributes["size"]
    if node.input(1) is not None:
        return None
    if size % 2:
        return b.op("LRN", data, [1], **node.attributes)
    rows = b.unsqueeze(b.reshape(data * data, 0, 0, -1), 1)
    pads = (size // 2 - 1, 0, size // 2, 0)
    mean = b.op(
        "AveragePool", rows, kernel_shape=(size, 1), pads=pads, count_include_pad=True,
    )  # fmt: skip
    return _normalized_by(b, node, b.op("Reshape", mean, b.op("Shape", data)))


@legalizes("LRN", target="onnx")
def lrn_to_onnx(b: Builder, node: Node) -> Result:
    """LRN-1 as OpenVINO computes it. A window of even size becomes one smaller and odd, but the sum
    is still divided by the even size. With spatial axes, the channel axis does not count."""
    data, axes = required(node, 0)[0], node.input(1)
    if axes is None:
        return None
    attributes, rank = node.attributes, ranks(node, 0)[0]
    given = b.constants(axes, "its axes")
    spans = sorted(axis % rank for axis in given)
    size = (attributes["size"] - 1) // 2 * 2 + 1
    if spans == list(range(1, rank)):
        spans = spans[1:] or spans
    alpha = attributes["alpha"] * (size / attributes["size"]) ** len(spans)
    attributes = {**attributes, "size": size, "alpha": alpha}
    if spans == [1]:
        return b.op("LRN", data, **attributes)
    if not spans or spans[0] < 2:
        raise Refused(f"axes {list(given)}: OpenVINO has LRN over the channels or spatial axes")
    kernel = tuple(size if axis in spans else 1 for axis in range(2, rank))
    pads = tuple(k // 2 for k in kernel) * 2
    squares = data * data
    mean = b.op("AveragePool", squares, kernel_shape=kernel, pads=pads, count_include_pad=True)
    return _normalized_by(b, node, mean, alpha)


def _normalized_by(b: Builder, node: Node, mean: Value, alpha: float | None = None) -> Value:
    """The input of an LRN divided by a power of the mean of squares in a window."""
    attributes = node.attributes
    scale = attributes["alpha"] if alpha is None else alpha
    base: Value = mean * scale + attributes["bias"]
    return required(node, 0)[0] / base ** b.like(attributes["beta"], base)


@legalizes("LpNormalization", target="ir")
def lp_normalization_to_ir(b: Builder, node: Node) -> Result:
    """LpNormalization (1 to 22): a vector of length 0 stays 0."""
    data = node.inputs[0]
    axis = b.constant([node.attributes["axis"]])
    norm = b.op("ReduceL1" if node.attributes["p"] == 1 else "ReduceL2", data, axis, keepdims=True)
    return data / b.where(norm.equal(0.0), 1.0, norm)


@legalizes("NormalizeL2", target="onnx")
def normalize_l2_to_onnx(b: Builder, node: Node) -> Result:
    """NormalizeL2-1. Without axes, each element but 0 is divided by itself."""
    data, axes = required(node, 0, 1)
    if axes.shape == (0,):
        return data / b.where(data.equal(0), b.like(1, data), data)
    total = b.op("ReduceSum", data * data, axes, keepdims=True)
    epsilon = b.like(node.attributes["eps"], total)
    joined = "Max" if node.attributes["eps_mode"] == "max" else "Add"
    return data / b.op("Sqrt", b.op(joined, total, epsilon))


@legalizes("GRN", target="onnx")
def grn_to_onnx(b: Builder, node: Node) -> Result:
    """GRN-1, which ONNX lacks: the data divided by the root of its sum of squares in all
    channels."""
    data = node.operand(0)
    total = b.op("ReduceSum", data * data, [1], keepdims=True) + node.attributes["bias"]
    return data / b.op("Sqrt", total)


@infers("LayerNormalization")
def infer_layer_normalization(node: Node) -> list[Type]:
    """LayerNormalization: the data, and statistics with 1 from `axis` on."""
    data = first(node)
    shape: Shape = None
    if data.shape is not None:
        axis = node.attributes["axis"] % max(len(data.shape), 1)
        shape = (*data.shape[:axis], *(1,) * (len(data.shape) - axis))
    statistics = TensorType(node.attributes["stash_type"] or F32, shape)
    return [data, statistics, statistics]


@reads("LayerNormalization", format="onnx", until=16)
def read_layer_normalization_1(b: Builder, node: Node) -> Result:
    """onnxruntime's LayerNormalization-1, the origin of LayerNormalization in ONNX's operator set
    17."""
    given = {"axis": -1, "epsilon": 1e-5, **node.attributes}
    given["stash_type"] = BY_ONNX.get(given.get("stash_type", 1))
    return b.ops("LayerNormalization", len(node.outputs), *node.inputs, **given)


def groups_of_channels(node: Node) -> must.Constraints:
    """GroupNormalization: equal groups of channels, and a scale and a bias for each channel (from
    operator set 21 on)."""
    x, scale, bias = must.operands(node, 3)
    if x.rank is None or x.rank < 2:
        return
    groups = node.attributes["num_groups"]
    if not must.multiple(x[1], groups):
        yield f"the channels of {x} are no {groups} groups"
    for factors in (scale, bias):
        why = "{} are no factors for the channels of {}"
        yield must.Rank(factors, 1, why, factors, x)
        yield must.Same(factors[0], x[1], why, factors, x)


must.hold("GroupNormalization", groups_of_channels)
must.hold(
    (
        "LayerNormalization", "LpNormalization", "RMSNormalization",
        "com.microsoft::SimplifiedLayerNormalization",
    ),
    must.axis_attribute("axis"),
)  # fmt: skip
must.hold("MeanVarianceNormalization", must.axis_attribute("axes"))
must.hold(("LRN", "MVN", "NormalizeL2"), must.axes_in(1))
