"""Normalisations that onnxruntime writes in its own domain, and two in ONNX's domain that the
standard lacks."""

from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.indexes import indexes
from bridge.neutral.types import F32, I32
from bridge.operators import Builder, Node, Result, legalizes, ranked, ranks, required
from bridge.operators.nn.normalization import axes_from, root_mean_square


@legalizes("com.microsoft::SimplifiedLayerNormalization", target="ir")
def simplified_layer_normalization(b: Builder, node: Node) -> Result:
    """onnxruntime's SimplifiedLayerNormalization-1 is RMSNormalization with an optional output: the
    inverse of the root."""
    data, scale = required(node, 0, 1)
    normal = b.node("RMSNormalization", [data, scale], attributes=dict(node.attributes))
    if len(node.outputs) == 1:
        return normal.outputs[0]
    wide = b.cast(data, node.attributes["stash_type"])
    root = root_mean_square(b, wide, axes_from(normal), node.attributes["epsilon"])
    return [normal.outputs[0], b.op("Reciprocal", root)]


@legalizes("com.microsoft::BranchwiseRMSNorm", target="ir")
def branchwise_rms_norm(b: Builder, node: Node) -> Result:
    """`com.microsoft::BranchwiseRMSNorm` (1): RMSNormalization of each branch, then scaled. The
    branches are the last axis but one, or `num_branches` equal parts of the last axis."""
    (data, rank), scale = ranked(node), node.input(1)
    branches = node.attributes.get("num_branches", 0)
    parts = data
    if branches:
        parts = b.reshape(data, *[0] * (rank - 1), branches, b.sizes(data, -1) / branches)
    wide = b.cast(parts, F32)
    epsilon = node.attributes.get("epsilon", 1e-5)
    y = b.op("RMSNormalization", wide, b.like(1, wide), axis=-1, epsilon=epsilon)
    if scale is not None:
        if ranks(node, 1) == [1] and scale.dims[0] != parts.dims[-1]:
            scale = b.reshape(scale, -1, b.sizes(parts, -1))
        y = y * b.cast(scale, F32)
    y = b.cast(y, data.element)
    return b.op("Reshape", y, b.op("Shape", data)) if branches else y


@legalizes(
    "com.microsoft::SkipLayerNormalization", "com.microsoft::SkipSimplifiedLayerNormalization",
    target="ir",
)  # fmt: skip
def skip_layer_normalization(b: Builder, node: Node) -> Result:
    """`com.microsoft::SkipLayerNormalization` and SkipSimplifiedLayerNormalization (1): the
    normalised sum of the input, the skip and a bias. The statistics (outputs 1 and 2) are for
    training."""
    simplified = node.op.endswith("SimplifiedLayerNormalization")
    data, skip, scale = required(node, 0, 1, 2)
    shift, bias = (None, node.input(3)) if simplified else (node.input(3), node.input(4))
    total = b.plus(data, skip, bias)
    epsilon = node.attributes.get("epsilon", 1e-12)
    if simplified:
        y = b.op("RMSNormalization", total, scale, epsilon=epsilon)
    else:
        y = b.op("LayerNormalization", total, scale, shift, epsilon=epsilon)
    return [y, None, None, total][: len(node.outputs)]


@legalizes("com.microsoft::EmbedLayerNormalization", target="ir")
def embed_layer_normalization(b: Builder, node: Node) -> Result:
    """`com.microsoft::EmbedLayerNormalization` (1): the normalised sum of the embeddings of a word,
    a position and a segment. The index of the mask is the number of ones in each row.
    `mask_index_type` is for shape inference alone; the index is the same."""
    node.attributes.get("mask_index_type")
    words, word_table, position_table, scale, shift = required(node, 0, 2, 3, 5, 6)
    segments, segment_table = node.input(1), node.input(4)
    mask, places = node.input(7), node.input(8)
    axis = b.constant(0)
    total = b.op("Gather", word_table, words, axis)
    where = b.positions(words, 1) if places is None else places
    total += b.op("Gather", position_table, where, axis)
    if segment_table is not None:
        # Without segments, all words are of the first one.
        total += b.op("Gather", segment_table, axis if segments is None else segments, axis)
    epsilon = node.attributes.get("epsilon", 1e-12)
    y = b.op("LayerNormalization", total, scale, shift, epsilon=epsilon)
    if mask is None:
        index = b.zeros(b.constant(0, I32), b.sizes(words, 0))
    else:
        ones = b.cast(mask.equal(1), I32)
        index = b.op("ReduceSum", ones, [1], keepdims=False)
    return [y, index, total][: len(node.outputs)]


@legalizes("com.microsoft::QEmbedLayerNormalization", target="ir")
def qembed_layer_normalization(b: Builder, node: Node) -> Result:
    """`com.microsoft::QEmbedLayerNormalization` (1): EmbedLayerNormalization with quantised tables.
    The scales begin at input 8, and the zero points at input 13."""
    tables = [
        None if table is None else b.op("DequantizeLinear", table, node.input(8 + i), zero)
        for i in range(5)
        for table, zero in [(node.input(2 + i), node.input(13 + i))]
    ]
    words, segments, mask = node.inputs[0], node.input(1), node.input(7)
    return b.ops(
        "com.microsoft::EmbedLayerNormalization", len(node.outputs), words, segments, *tables, mask,
        **node.attributes,
    )  # fmt: skip


indexes("com.microsoft::EmbedLayerNormalization", {0: "2[0]", 1: "4[0]"})
indexes("com.microsoft::QEmbedLayerNormalization", {0: "2[0]", 1: "4[0]"})


@legalizes("com.microsoft::GatedRMSNorm", target="ir")
def gated_rms_norm(b: Builder, node: Node) -> Result:
    """`com.microsoft::GatedRMSNorm` (1): RMSNormalization of groups along the last axis, times an
    activation of a gate. Each group is as long as the scale. The computation is in f32."""
    data, scale, gate = required(node, 0, 1, 2)
    wide = [b.cast(value, F32) for value in (data, scale, gate)]
    (rank,), size = ranks(node, 0), b.sizes(scale, 0)
    groups = b.reshape(wide[0], *(0,) * (rank - 1), b.sizes(data, -1) / size, size)
    epsilon = node.attributes.get("epsilon", 1e-5)
    normal = b.op("RMSNormalization", groups, wide[1], axis=-1, epsilon=epsilon)
    y = b.op("Reshape", normal, b.op("Shape", data))
    opened = b.op("Sigmoid", wide[2])
    if node.attributes.get("activation", "silu") != "sigmoid":
        opened = wide[2] * opened
    return b.cast(y * opened, data.element)


@legalizes("com.microsoft::GroupNorm", "com.microsoft::SkipGroupNorm", target="ir")
def group_norm(b: Builder, node: Node) -> Result:
    """GroupNorm and SkipGroupNorm: GroupNormalization of a sum, by default with the channels last,
    and optionally with SiLU behind it."""
    data, scale, shift = required(node, 0, 1, 2)
    attributes = node.attributes
    (rank,) = ranks(node, 0)
    skip, bias = node.input(3), node.input(4)
    last = attributes.get("channels_last", 1)
    if skip is not None:
        if b.known(skip.rank, "the rank of its skip") == 2:
            skip = b.reshape(skip, 0, *(1,) * (rank - 2), -1)
        data += skip
    data = b.plus(data, bias)
    x = b.channels_first(data, rank) if last else data
    wide = [b.cast(value, F32) for value in (x, scale, shift)]
    y = b.op(
        "GroupNormalization", *wide, num_groups=attributes["groups"],
        epsilon=attributes.get("epsilon", 1e-5),
    )  # fmt: skip
    if attributes["activation"]:
        y = b.op("Swish", y)
    y = b.cast(b.channels_last(y, rank) if last else y, data.element)
    return [y, data][: len(node.outputs)]


must.hold(
    ("com.microsoft::EmbedLayerNormalization", "com.microsoft::QEmbedLayerNormalization"),
    *must.have_ranks(2, 2),
)
