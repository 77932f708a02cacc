"""Attention of onnxruntime's own domain, com.microsoft, for IR. It becomes
ScaledDotProductAttention with projections, masks and caches around it. The source is onnxruntime's
ContribOperators and its `contrib_ops/cpu/bert`. Attributes have their values from the file."""

from bridge.neutral.inference import constraints as must
from bridge.neutral.types import ANY, F16, F32, I64_MAX
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, required
from bridge.operators.matmul.attention import (
    Mask,
    ahead,
    attend,
    attend_in_parts,
    by_heads,
    joined_heads,
)

_MASKED = -10000.0
"""The default of mask_filter_value."""

_LARGEST_F16 = 65504.0


def scale_of(node: Node) -> float | None:
    """The scale; 0 selects the default."""
    return node.attributes.get("scale") or None


@legalizes("com.microsoft::Attention", target="ir")
def attention(b: Builder, node: Node) -> Result:
    """Attention within one sequence. One matrix computes queries, keys and values."""
    data, weights = required(node, 0, 1)
    past = node.input(4)
    projected = b.plus(b.op("MatMul", data, weights), node.input(2))
    widths = node.attributes.get("qkv_hidden_sizes")
    if widths is None:
        parts = b.ops("Split", 3, projected, axis=2)
    else:
        if widths[1] != widths[2] and past is not None:
            raise Refused("its keys and values have different sizes, so one cache cannot have both")
        parts = b.split(projected, 2, *widths)
    query, key, value = (by_heads(b, part, node.attributes["num_heads"]) for part in parts)
    if past is not None:
        key, value = (
            b.concat(2, b.op("Gather", past, i, 0), new) for i, new in enumerate((key, value))
        )
    q, k, v = _wide_enough(b, node, node.input(3), query, key, value)
    start = b.sizes(k, 2) - b.sizes(q, 2)
    mask = _mask(b, node, q, k, node.input(3), node.input(5), start)
    y = b.cast(joined_heads(b, attend(b, q, k, v, mask, scale_of(node))), query.element)
    if len(node.outputs) == 1 or (widths is not None and widths[1] != widths[2]):
        return [y, None][: len(node.outputs)]
    return [y, b.concat(0, b.unsqueeze(key, 0), b.unsqueeze(value, 0))]


@legalizes("com.microsoft::QAttention", target="ir")
def qattention(b: Builder, node: Node) -> Result:
    """`com.microsoft::QAttention` (1): Attention of quantised data and weights."""
    data, weights, bias, data_scale, weights_scale = required(node, 0, 1, 2, 3, 4)
    x = b.op("DequantizeLinear", data, data_scale, node.input(6))
    w = b.op("DequantizeLinear", weights, weights_scale, node.input(7), axis=1)
    inputs = (x, w, bias, node.input(5), node.input(8))
    return b.ops("com.microsoft::Attention", len(node.outputs), *inputs, **node.attributes)


@legalizes("com.microsoft::MultiHeadAttention", target="ir")
def multi_head_attention(b: Builder, node: Node) -> Result:
    """`com.microsoft::MultiHeadAttention` (1): Attention of projected queries, keys and values. The
    node may still add a bias."""
    heads = node.attributes["num_heads"]
    query, key, value = _projected(b, node, heads)
    cross = query.dims[2] != key.dims[2] or query.dims[2] == ANY
    past_key, past_value = node.input(6), node.input(7)
    if past_key is not None and past_value is not None:
        key, value = b.concat(2, past_key, key), b.concat(2, past_value, value)
    q, k, v = _wide_enough(b, node, node.input(4), query, key, value)
    start = None if past_key is None else b.sizes(past_key, 2)
    mask = _mask(b, node, q, k, node.input(4), node.input(5), start, cross)
    scores = None
    if len(node.outputs) < 4:
        y = attend(b, q, k, v, mask, scale_of(node))
    else:
        y, stages = attend_in_parts(b, q, k, v, mask, scale_of(node), 0)
        scores = b.cast(stages[2], query.element)
    y = b.cast(joined_heads(b, y), query.element)
    return [y, key, value, scores][: len(node.outputs)]


@legalizes("com.microsoft::DecoderMaskedMultiHeadAttention", target="ir")
def decoder_masked_attention(b: Builder, node: Node) -> Result:
    """`com.microsoft::DecoderMaskedMultiHeadAttention` (1): MultiHeadAttention of one new token.
    Its cache is a buffer, of which each beam may read the rows of another one."""
    query, key, value = required(node, 0, 1, 2)
    mask, bias, past_key, past_value, length, _, beams, added = (
        node.input(i) for i in range(3, 11)
    )
    kept = {k: node.attributes[k] for k in _KEPT if k in node.attributes}

    def attend(*inputs: Value | None) -> list[Value]:
        return b.ops("com.microsoft::MultiHeadAttention", 1, query, *inputs, **kept)

    if past_key is None or past_value is None:
        return attend(key, value, added, mask, bias)
    if length is None:
        raise Refused("it needs past_present_share_buffer = 1")
    heads = node.attributes["num_heads"]
    end = b.reshape(b.as_i64(length), 1)
    if added is not None:
        query, key, value = (
            x + part for x, part in zip((query, key, value), b.ops("Split", 3, added), strict=True)
        )
    present, read = [], []
    for past, new in ((past_key, key), (past_value, value)):
        row, old = by_heads(b, new, heads), b.cut(past, 2, 0, end)
        present.append(b.concat(2, old, row, b.cut(past, 2, end + 1, b.sizes(past, 2))))
        if beams is not None:
            old = _of_beams(b, old, b.cut(beams, 2, 0, end))
        read.append(b.concat(2, old, row))
    return [*attend(*read, None, mask, bias), *present][: len(node.outputs)]


_KEPT = ("num_heads", "scale", "mask_filter_value")


def _of_beams(b: Builder, past: Value, beams: Value) -> Value:
    """Keys or values [batch * beams, heads, length, size], each from the beam that `beams` [batch,
    beams, length] names for it."""
    shape = b.op("Shape", past)
    split = b.reshape(past, b.concat(0, b.sizes(beams, 0), b.sizes(beams, 1), shape[1:]))
    places = b.op("Expand", b.unsqueeze(b.as_i64(beams), 2, 4), b.op("Shape", split))
    return b.reshape(b.op("GatherElements", split, places, axis=1), shape)


def _projected(b: Builder, node: Node, heads: int) -> list[Value]:
    """Queries, keys and values split into heads, from separate or packed inputs, with their
    biases."""
    query = node.operand(0)
    key, value, bias = (node.input(i) for i in range(1, 4))
    (rank,) = ranks(node, 0)
    if key is None:
        if rank != 5:
            raise Refused("it has neither keys nor packed keys")
        parts = _unpacked(b, query, 3)
    elif value is None:
        if ranks(node, 1) != [5]:
            raise Refused("it has neither values nor packed values")
        parts = [by_heads(b, query, heads), *_unpacked(b, key, 2)]
    else:
        # Keys and values of a cross attention may already be split into heads and have their
        # biases.
        parts = [x if x.rank == 4 else by_heads(b, x, heads) for x in (query, key, value)]
    if bias is None:
        return parts
    if bias.rank is None or not all(x.rank is not None for x in parts):
        raise Refused("the ranks of its inputs are not known; declare the graph's input shapes")
    size, biased = parts[0].dims[3], []
    width = heads * size if isinstance(size, int) else b.sizes(parts[0], 3) * heads
    for index, (x, source) in enumerate(zip(parts, (query, key, value), strict=True)):
        if source is not None and source.rank == 4:
            biased.append(x)
            continue
        part = bias[width * index : width * (index + 1) if index < 2 else I64_MAX]
        biased.append(x + b.reshape(part, heads, 1, -1))
    return biased


def _unpacked(b: Builder, x: Value, count: int) -> list[Value]:
    """A tensor `[batch, length, heads, count, size]` as `count` tensors `[batch, heads, length,
    size]`."""
    parts = b.split(b.transpose(x, 3, 0, 2, 1, 4), 0, *(1,) * count)
    return [b.op("Squeeze", part, [0]) for part in parts]


def _wide_enough(b: Builder, node: Node, mask: Value | None, *values: Value) -> list[Value]:
    """The values in f32 if they are f16 and cannot hold the score of padding. With -inf as this
    score, a row that has only padding would be NaN."""
    score = node.attributes.get("mask_filter_value", _MASKED)
    narrow = mask is not None and values[0].element is F16 and abs(score) > _LARGEST_F16
    return [b.cast(value, F32) for value in values] if narrow else list(values)


def _mask(
    b: Builder,
    node: Node,
    query: Value,
    key: Value,
    mask: Value | None,
    bias: Value | None,
    start: Value | None,
    cross: bool = False,
) -> Mask:
    """The mask of padding, bias and causal order, in which the first query is at the position
    `start` of the keys. In `cross` attention there may be more keys than queries. Padding lowers
    scores by a large number but does not forbid them. A row that has only padding therefore has
    the average of its values."""
    if mask is not None:
        kept = _kept(b, mask, query, key, node.op.endswith("MultiHeadAttention"))
        filtered = b.like(node.attributes.get("mask_filter_value", _MASKED), query)
        bias = b.plus(b.where(kept, 0.0, filtered), bias and b.cast(bias, query.element))
    allowed = None
    if node.attributes.get("unidirectional", 0):
        allowed = ahead(b, query, key, start) <= 0
        if cross:  # The last query is out of the order.
            last = b.sizes(query, 2) - [1]
            allowed |= b.unsqueeze(b.positions(query, 2), 1).equal(last)
    return Mask(bias, allowed, False)


def _kept(b: Builder, mask: Value, query: Value, key: Value, right_only: bool) -> Value:
    """A mask of the keys without padding. The input mask is [batch, keys] or [batch, queries,
    keys], or 1-D. A 1-D mask has the beginnings of the right padding. The ends of the left padding
    may follow, unless it is `right_only`, or sums of lengths, which are not read."""
    if mask.rank in (2, 3):
        kept = mask > 0
        return b.unsqueeze(kept, 1, 2) if mask.rank == 2 else b.unsqueeze(kept, 1)
    if mask.rank != 1:
        raise Refused(f"its mask must have 1, 2 or 3 axes, not {mask.rank or 'an unknown number'}")
    batch, keys = b.sizes(query, 0), b.positions(key, 2)
    size, length = query.dims[0], mask.dims[0]
    is_known = size == length or (isinstance(size, int) and isinstance(length, int))
    if right_only or (isinstance(size, int) and length == 3 * size + 2):
        mask = b.cut(mask, 0, 0, batch)
    elif not is_known:
        mask = b.cut(mask, 0, 0, batch * b.where(b.sizes(mask, 0).equal(batch * 2), 2, 1))
    # Without left padding, the end of left padding is 0.
    ends = b.concat(0, b.as_i64(mask), b.zeros(keys, batch))
    right, left = (
        b.unsqueeze(ends[start:end], 1, 2, 3) for start, end in ((0, batch), (batch, batch * [2]))
    )
    return (keys < right) & (keys >= left)


def _query(node: Node) -> must.Constraints:
    """A query of three axes, or of five with the keys and values in it."""
    rank = 3 if node.input(1) is not None else 5
    yield from must.has_rank(rank, rank)(node)


must.hold(("com.microsoft::Attention", "com.microsoft::QAttention"), *must.have_ranks(3, 2, 1))
must.hold("com.microsoft::DecoderMaskedMultiHeadAttention", *must.have_ranks(3))
must.hold("com.microsoft::MultiHeadAttention", _query)
