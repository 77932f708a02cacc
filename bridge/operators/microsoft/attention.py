"""Attention of onnxruntime's own domain, com.microsoft, for IR: ScaledDotProductAttention with
projections, masks, caches and rotary embeddings around it (onnxruntime's ContribOperators, and
`contrib_ops/cpu/bert` there). Attributes are as in the file."""

from __future__ import annotations

from typing import Any

from bridge.neutral.inference import constraints as must
from bridge.neutral.types import I64_MAX
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, required
from bridge.operators.matmul.attention import (
    MINUS_INFINITY,
    Mask,
    ahead,
    attend,
    attend_in_parts,
    by_heads,
    joined_heads,
)

_MASKED = -10000.0
"""Default of mask_filter_value."""


def _scale(node: Node) -> float | None:
    """The scale; 0 asks for the default."""
    return node.attributes.get("scale") or None


def _require_default(node: Node, *names: str) -> None:
    """Refuses a node in which one of the attributes is set."""
    for name in names:
        if node.attributes.get(name, 0) not in (0, "NONE"):
            raise Refused(f"its {name} = {node.attributes[name]} is not supported")


def _require_absent(node: Node, **inputs: int) -> None:
    """Refuses a node that has one of the inputs."""
    for name, index in inputs.items():
        if node.input(index) is not None:
            raise Refused(f"its input {name} is not supported")


# Attention and MultiHeadAttention ---------------------------------------------------------------


@legalizes("com.microsoft::Attention", target="ir")
def attention(b: Builder, node: Node) -> Result:
    """Attention within one sequence, of which one matrix makes queries, keys and values."""
    _require_default(node, "do_rotary", "past_present_share_buffer")
    data, weights = required(node, 0, 1)
    past = node.input(4)
    projected = b.plus(b.op("MatMul", data, weights), node.input(2))
    widths = node.attributes.get("qkv_hidden_sizes")
    if widths is None:
        parts = b.ops("Split", 3, projected, axis=2)
    else:
        parts = b.split(projected, 2, *widths)
    query, key, value = (by_heads(b, part, node.attributes["num_heads"]) for part in parts)
    if past is not None:
        key, value = (
            b.concat(2, b.op("Gather", past, i, 0), new) for i, new in enumerate((key, value))
        )
    mask = _mask(b, node, query, key, node.input(3), node.input(5))
    y = joined_heads(b, attend(b, query, key, value, mask, _scale(node)))
    if len(node.outputs) == 1:
        return y
    return [y, b.concat(0, b.unsqueeze(key, 0), b.unsqueeze(value, 0))]


@legalizes("com.microsoft::QAttention", target="ir")
def qattention(b: Builder, node: Node) -> Result:
    """com.microsoft::QAttention (1): Attention of quantised data and weights."""
    data, weights, bias, data_scale, weights_scale = required(node, 0, 1, 2, 3, 4)
    x = b.op("DequantizeLinear", data, data_scale, node.input(6))
    w = b.op("DequantizeLinear", weights, weights_scale, node.input(7), axis=1)
    inputs = (x, w, bias, node.input(5), node.input(8))
    return b.ops("com.microsoft::Attention", len(node.outputs), *inputs, **node.attributes)


@legalizes("com.microsoft::MultiHeadAttention", target="ir")
def multi_head_attention(b: Builder, node: Node) -> Result:
    """com.microsoft::MultiHeadAttention (1): Attention of queries, keys and values that are
    projected already, but for a bias."""
    _require_absent(node, past_sequence_length=8, cache_indirection=9)
    heads = node.attributes["num_heads"]
    query, key, value = _projected(b, node, heads)
    past_key, past_value = node.input(6), node.input(7)
    if past_key is not None and past_value is not None:
        key, value = b.concat(2, past_key, key), b.concat(2, past_value, value)
    mask = _mask(b, node, query, key, node.input(4), node.input(5))
    scores = None
    if len(node.outputs) < 4:
        y = attend(b, query, key, value, mask, _scale(node))
    else:
        y, stages = attend_in_parts(b, query, key, value, mask, _scale(node), 0)
        scores = stages[2]
    return [joined_heads(b, y), key, value, scores][: len(node.outputs)]


def _projected(b: Builder, node: Node, heads: int) -> list[Value]:
    """Queries, keys and values by heads, from separate or packed inputs, with their biases."""
    (query,) = required(node, 0)
    key, value, bias = (node.input(i) for i in range(1, 4))
    (rank,) = ranks(node, 0)
    if key is None:
        if rank != 5:
            raise Refused("it has neither keys nor packed ones")
        parts = _unpacked(b, query, 3)
    elif value is None:
        if ranks(node, 1) != [5]:
            raise Refused("it has neither values nor packed ones")
        parts = [by_heads(b, query, heads), *_unpacked(b, key, 2)]
    else:
        # Keys and values of a cross attention may be by heads already; these have their biases.
        parts = [x if x.rank == 4 else by_heads(b, x, heads) for x in (query, key, value)]
    if bias is None:
        return parts
    if bias.rank is None or not all(x.rank is not None for x in parts):
        raise Refused("the ranks of its inputs are not known; declare the graph's input shapes")
    size = parts[0].dims[3]
    if not isinstance(size, int):
        raise Refused("the size of its heads is not known; declare the graph's input shapes")
    biased = []
    for index, (x, source) in enumerate(zip(parts, (query, key, value), strict=True)):
        if source is not None and source.rank == 4:
            biased.append(x)
            continue
        start = index * heads * size
        own = b.cut(bias, 0, start, start + heads * size if index < 2 else I64_MAX)
        biased.append(b.op("Add", x, b.reshape(own, heads, 1, -1)))
    return biased


def _unpacked(b: Builder, x: Value, count: int) -> list[Value]:
    """[batch, length, heads, count, size] as `count` times [batch, heads, length, size]."""
    parts = b.split(b.transpose(x, 3, 0, 2, 1, 4), 0, *(1,) * count)
    return [b.op("Squeeze", part, [0]) for part in parts]


def _mask(
    b: Builder, node: Node, query: Value, key: Value, mask: Value | None, bias: Value | None
) -> Mask:
    """The padding, which lowers scores by much but does not forbid, so that a row of nothing but
    padding has its average; the bias; and the causal frontier."""
    if mask is not None:
        kept = _kept(b, mask, query, key)
        filtered = b.like(node.attributes.get("mask_filter_value", _MASKED), query)
        padding = b.op("Where", kept, 0.0, filtered)
        bias = b.plus(padding, bias)
    allowed = None
    if node.attributes.get("unidirectional", 0):
        past = b.op("Sub", b.sizes(key, 2), b.sizes(query, 2))
        allowed = b.op("LessOrEqual", ahead(b, query, key, past), 0)
    return Mask(bias, allowed, False)


def _kept(b: Builder, mask: Value, query: Value, key: Value) -> Value:
    """Which keys are no padding, from a mask [batch, keys] or [batch, queries, keys], or from where
    padding on the right begins and, after these, where padding on the left ends."""
    if mask.rank in (2, 3):
        kept = b.op("Greater", mask, 0)
        return b.unsqueeze(kept, 1, 2) if mask.rank == 2 else b.unsqueeze(kept, 1)
    if mask.rank != 1:
        raise Refused(f"its mask must have 1, 2 or 3 axes, not {mask.rank or 'an unknown number'}")
    batch, keys = b.sizes(query, 0), b.positions(key, 2)
    # Without padding on the left it ends at 0.
    ends = b.concat(0, b.as_i64(mask), b.zeros(keys, batch))
    right, left = (
        b.unsqueeze(b.cut(ends, 0, start, end), 1, 2, 3)
        for start, end in ((0, batch), (batch, b.op("Mul", batch, [2])))
    )
    return b.op("And", b.op("Less", keys, right), b.op("GreaterOrEqual", keys, left))


# GroupQueryAttention ----------------------------------------------------------------------------


@legalizes("com.microsoft::GroupQueryAttention", target="ir")
def group_query_attention(b: Builder, node: Node) -> Result:
    """com.microsoft::GroupQueryAttention (1): causal attention with a cache of keys and values,
    into which the new ones are written where those of each sequence of the batch end. What lies
    behind them is zeros, whatever the cache had there. `seqlens_k` counts all keys of a sequence
    but one."""
    _require_default(node, "k_quant_type", "v_quant_type", "sliding_window_cache", "qk_output")
    _require_absent(node, k_scale=12, v_scale=13, q_norm_weight=14, k_norm_weight=15)
    attributes: dict[str, Any] = node.attributes
    query, seqlens, total = required(node, 0, 5, 6)
    past_key, past_value = node.input(3), node.input(4)
    query, key, value = _grouped(b, node, query)
    lengths = b.reshape(b.op("Add", b.as_i64(seqlens), 1), -1, 1)
    start = None
    if past_key is not None:
        start = b.op("Max", b.op("Sub", lengths, b.sizes(query, 2)), 0)
    if attributes.get("do_rotary", 0):
        query, key = _rotated_pair(b, node, query, key, start)
    present = [key, value]
    if past_key is not None and past_value is not None and start is not None:
        start, whole = b.unsqueeze(start, 2, 3), b.reshape(b.as_i64(total), 1)
        present = [
            _written(b, past, new, start, whole)
            for past, new in ((past_key, key), (past_value, value))
        ]
        key, value = (b.cut(x, 2, 0, whole) for x in present)
    if attributes.get("causal", 1):
        distance = ahead(b, query, key, start)
        allowed = b.op("LessOrEqual", distance, 0)
        window = attributes.get("local_window_size", -1)
        if window > 0:
            near = b.op("Greater", distance, -window)
            allowed = b.op("And", allowed, near)
    else:
        allowed = b.op("Less", b.positions(key, 2), b.unsqueeze(lengths, 2, 3))
    mask = Mask(node.input(10), allowed, False)
    sink = node.input(11)
    if sink is None and attributes.get("smooth_softmax", -1) > 0:
        sink = b.like([0.0], query)
    if sink is not None:
        key, value, mask = _with_sink(b, sink, query, key, value, mask)
    y = attend(b, query, key, value, mask, _scale(node), attributes.get("softcap", 0.0))
    return [joined_heads(b, y), *present][: len(node.outputs)]


def _lengths(node: Node) -> must.Constraints:
    """The longest sequence of the batch has all keys; the cache grows by the new ones."""
    query, past = must.Operand(node.input(0)), must.Operand(node.input(3))
    sizes = (0 if past.value is None else past[2], query[1])
    yield must.Count(node.input(5), sizes, -1)
    yield must.Count(node.input(6), sizes)


must.hold("com.microsoft::GroupQueryAttention", _lengths)


def _grouped(b: Builder, node: Node, query: Value) -> list[Value]:
    """Queries, keys and values by heads; packed ones come in the first input."""
    heads, groups = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    key, value = node.input(1), node.input(2)
    if key is None or value is None:
        together = by_heads(b, query, heads + 2 * groups)
        return b.split(together, 1, heads, groups, groups)
    return [by_heads(b, query, heads), by_heads(b, key, groups), by_heads(b, value, groups)]


def _written(b: Builder, past: Value, new: Value, start: Value, total: Value) -> Value:
    """The cache, grown to `total` where it is shorter, with `new` from `start` on, and zeros behind
    that: onnxruntime copies no more of the cache than what each sequence has."""
    used = b.op("Less", b.unsqueeze(b.positions(past, 2), 1), start)
    missing = b.op("Max", b.op("Sub", total, b.sizes(past, 2)), 0)
    room = b.zeros(past, b.sizes(past, 0), b.sizes(past, 1), missing, b.sizes(past, 3))
    cache = b.concat(2, b.op("Where", used, past, b.like(0, past)), room)
    places = b.op("Add", start, b.unsqueeze(b.positions(new, 2), 1))
    return b.op("ScatterElements", cache, b.op("Expand", places, b.op("Shape", new)), new, 2)


def _with_sink(
    b: Builder, sink: Value, query: Value, key: Value, value: Value, mask: Mask
) -> tuple[Value, Value, Mask]:
    """One more key, which has the score of the head's sink and the value 0: it takes its part of
    the softmax and gives nothing."""
    empty = [b.cut(b.op("Mul", x, 0), 2, 0, 1) for x in (key, value)]
    bias = b.like(0.0, query) if mask.bias is None else mask.bias
    masked = b.op("Where", mask.allowed, bias, MINUS_INFINITY)
    scores = b.expand(masked, b.shape(b.sizes(query, 0, 1, 2), 1))
    column = b.expand(b.reshape(sink, -1, 1, 1), b.shape(b.sizes(query, 0, 1, 2), 1))
    return (
        b.concat(2, key, empty[0]),
        b.concat(2, value, empty[1]),
        Mask(b.concat(3, scores, column), None, False),
    )


# Rotary embeddings ------------------------------------------------------------------------------


def _rotated_pair(
    b: Builder, node: Node, query: Value, key: Value, start: Value | None
) -> list[Value]:
    """Queries and keys, turned by their places."""
    cos, sin = required(node, 7, 8)
    places = node.input(9)
    if places is None:
        places = b.plus(b.unsqueeze(b.positions(query, 2), 0), start)
        places = b.expand(places, b.sizes(query, 0), b.sizes(query, 2))
    interleaved = bool(node.attributes.get("rotary_interleaved", 0))
    return [_rotated(b, x, places, cos, sin, interleaved) for x in (query, key)]


def _rotated(
    b: Builder, x: Value, places: Value, cos: Value, sin: Value, interleaved: bool
) -> Value:
    """[batch, heads, length, size] turned, as many of its first elements as the caches are for."""
    width = None if cos.shape is None else cos.shape[1]
    if not isinstance(width, int):
        raise Refused("the width of its cos_cache is not known; declare the graph's input shapes")
    return b.op(
        "RotaryEmbedding", x, cos, sin, places,
        interleaved=interleaved, rotary_embedding_dim=2 * width,
    )  # fmt: skip


@legalizes("com.microsoft::RotaryEmbedding", target="ir")
def rotary_embedding(b: Builder, node: Node) -> Result:
    """com.microsoft::RotaryEmbedding (1): ONNX's, whose places may be given by the first alone, and
    heads by the caches."""
    _require_default(node, "is_packed_batching")
    x, places, cos, sin = required(node, 0, 1, 2, 3)
    attributes = node.attributes
    rank, places_rank = ranks(node, 0, 1)
    heads = attributes.get("num_heads", 0)
    if rank == 3:
        if heads:
            x = by_heads(b, x, heads)
        else:
            width = cos.dims[1] if ranks(node, 2) else None
            if not isinstance(width, int):
                raise Refused("it says neither how many heads there are nor how wide they are")
            x = b.transpose(b.reshape(x, 0, 0, -1, 2 * width), 0, 2, 1, 3)
    if places_rank == 1:
        row = b.op("Add", places, b.positions(x, 2))
        places = b.expand(row, b.sizes(x, 0), b.sizes(x, 2))
    y = _rotated(b, x, places, cos, sin, bool(attributes.get("interleaved", 0)))
    return joined_heads(b, y) if rank == 3 else y
