"""Attention of ONNX and ScaledDotProductAttention of IR."""

from dataclasses import dataclass, replace

import numpy as np

from bridge.neutral.graph import operand_of, producer_of
from bridge.neutral.inference import constraints as must, first, infers
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import is_number
from bridge.neutral.types import (
    ANY,
    BF16,
    BOOL,
    F32,
    I32,
    Dim,
    Element,
    Interval,
    TensorType,
    broadcast,
)
from bridge.operators import Builder, Node, Result, Value, legalizes, required

MINUS_INFINITY = float("-inf")

# Into IR ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mask:
    """The mask of attention. `bias` is added to the scores, `allowed` marks the scores that stay,
    and `may_be_empty` tells whether a query may have no key. A query without a key gives zeros, not
    NaN. All broadcast to `[batch, heads, queries, keys]`."""

    bias: Value | None
    allowed: Value | None
    may_be_empty: bool


NO_MASK = Mask(None, None, False)
NO_BIAS = [[[[0.0]]]]
"""The mask in front of a scale. Its rank is the rank of the scores; `fuse/cached_attention.py`
makes the same mask and explains it."""


@legalizes("Attention", target="ir")
def attention_to_ir(b: Builder, node: Node) -> Result:
    """Attention as ScaledDotProductAttention, or as its parts for softcap, another precision or an
    output of scores. The standard's function body recognises masked rows by a maximum of -inf, but
    this rule reads the mask itself."""
    query, key, value = required(node, 0, 1, 2)
    attributes = node.attributes
    # With an unknown rank, only 3-D inputs have a number of heads.
    heads = query.rank == 3 if query.rank is not None else bool(attributes.get("q_num_heads"))
    if heads:
        query = by_heads(b, query, attributes["q_num_heads"])
        key = by_heads(b, key, attributes["kv_num_heads"])
        value = by_heads(b, value, attributes["kv_num_heads"])
    past_key, past_value = node.input(4), node.input(5)
    if past_key is not None and past_value is not None:
        key = b.op("Concat", past_key, key, axis=2)
        value = b.op("Concat", past_value, value, axis=2)
    present = [key, value]
    if is_cache(key) and is_cache(value):
        key, value = (repeated(b, x, query) for x in (key, value))
    # Values may have another type, but the result has the type of the queries.
    key, value = (b.cast(x, query.element) for x in (key, value))
    plain = all(node.input(i) is None for i in range(3, 7)) and (
        attributes["left_window_size"] < 0 and attributes["right_window_size"] < 0
    )
    scale, softcap = attributes.get("scale"), attributes["softcap"]
    precision = attributes.get("softmax_precision") or query.element
    scores = None
    fused = len(node.outputs) < 4 and precision is query.element
    plainly_causal = attributes["is_causal"] and plain and fused and not softcap
    mask = NO_MASK if plainly_causal else _mask(b, node, query, key)
    if fused:
        y = attend(b, query, key, value, mask, scale, softcap, plainly_causal)
    else:
        y, stages = attend_in_parts(b, query, key, value, mask, scale, softcap, precision)
        scores = stages[attributes["qk_matmul_output_mode"]]
    if heads:
        y = joined_heads(b, y)
    return [y, *present, scores][: len(node.outputs)]


def attend(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Mask,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    length: Value | None = None,
) -> Value:
    """Attention over `[batch, heads, length, size]`, possibly with fewer heads of keys and values.
    It becomes ScaledDotProductAttention if possible, otherwise its parts. The default `scale` is 1
    / sqrt(size), and a `softcap` of 0 has no effect. `causal` requires an empty mask. `length` is
    the 1-D length of the queries, if a value has it."""
    if not causal and _share_keys(query, key, value, mask):
        heads, groups = query.dims[1], key.dims[1]
        assert isinstance(heads, int) and isinstance(groups, int)
        if length is None:
            length = b.sizes(query, 2)
        rows = b.reshape(query, 0, groups, -1, 0)
        few = _of_rows(b, mask, query, groups, length)
        y = attend(b, rows, key, value, few, scale, softcap)
        return b.reshape(y, 0, heads, length, 0)
    if softcap:
        return attend_in_parts(b, query, key, value, mask, scale, softcap)[0]
    key, value = (repeated(b, x, query) for x in (key, value))
    bias = _bias(b, mask, query)
    factor = None if scale is None else b.like(scale, query)
    given = b.like(NO_BIAS, query) if bias is None and factor is not None else bias
    y = b.op("ScaledDotProductAttention", query, key, value, given, factor, causal=causal)
    if bias is None or not mask.may_be_empty:
        return y
    return b.where(_seen(b, mask, bias), y, 0.0)


def by_heads(b: Builder, x: Value, count: int) -> Value:
    """Splits `[batch, length, count * size]` into `[batch, count, length, size]`."""
    # An open size may be that of an empty tensor, for which -1 says nothing.
    size = -1 if x.rank != 3 or isinstance(x.dims[2], int) else b.sizes(x, 2) / count
    return b.transpose(b.reshape(x, 0, 0, count, size), 0, 2, 1, 3)


def joined_heads(b: Builder, x: Value) -> Value:
    """Joins `[batch, count, length, size]` to `[batch, length, count * size]`."""
    return b.reshape(b.transpose(x, 0, 2, 1, 3), 0, 0, -1)


def ahead(b: Builder, query: Value, key: Value, start: Value | None = None) -> Value:
    """The distance from each query to each key. The first query is at the position `start` of the
    keys."""
    place = b.unsqueeze(b.positions(query, 2), 1)
    if start is not None:
        place += start
    return b.positions(key, 2) - place


def _share_keys(query: Value, key: Value, value: Value, mask: Mask) -> bool:
    """Whether several heads of queries share one head of keys. With known numbers of heads, their
    queries can become more rows of one head. Keys are then not repeated."""
    known = query.rank == key.rank == value.rank == 4
    if not known:
        return False
    heads = [x.dims[1] for x in (query, key, value)]
    many = all(isinstance(count, int) and count for count in heads) and heads[0] != heads[1]
    masks = [x for x in (mask.bias, mask.allowed) if x is not None]
    return (
        many
        and heads[1] == heads[2]
        and all(x.rank is not None and x.rank <= 4 and _heads(x) in (1, heads[0]) for x in masks)
    )


def _heads(mask: Value) -> Dim:
    """The size of the axis of heads of a mask."""
    return mask.dims[-3] if mask.dims[2:] else 1


def _of_rows(b: Builder, mask: Mask, query: Value, groups: int, length: Value) -> Mask:
    """A mask for the queries of all heads that share keys, one head after another."""
    times = query.dims[1] // groups  # type: ignore[operator]

    def rows(x: Value | None) -> Value | None:
        if x is None or not x.dims[1:] or (_heads(x) == 1 and x.dims[-2] == 1 != query.dims[2]):
            return x
        if x.dims[-2] != query.dims[2] or isinstance(x.dims[-2], Interval):
            x = b.expand(x, length, 1)
        if _heads(x) == 1:
            return b.concat(-2, *[x] * times)
        return b.reshape(x, *[0] * (len(x.dims) - 3), groups, -1, 0)

    return replace(mask, bias=rows(mask.bias), allowed=rows(mask.allowed))


def is_cache(x: Value) -> bool:
    """Whether keys or values are the content of an IR variable with new ones behind it. Their heads
    are repeated, as in the stateful IRs of exporters. `fuse/cached_attention.py` names the kernels
    that need this form."""
    held = operand_of(x, "Concat")
    return held is not None and producer_of(held.behind("Gather"), "ReadValue") is not None


def repeated(b: Builder, x: Value, query: Value) -> Value:
    """Repeats each head of keys or values for all its heads of queries."""
    if x.shape is not None and query.shape is not None and x.shape[1] == query.shape[1]:
        return x
    times = b.sizes(query, 1) / b.sizes(x, 1)
    many = b.expand(b.unsqueeze(x, 2), 1, 1, times, 1, 1)
    return b.reshape(many, b.shape(0, b.sizes(query, 1), b.sizes(x, 2), b.sizes(x, 3)))


def _mask(b: Builder, node: Node, query: Value, key: Value) -> Mask:
    """The mask of an ONNX Attention, with its causal order, its window and its padding."""
    given, lengths = node.input(3), node.input(6)
    bias = None
    allowed: list[Value] = []
    may_be_empty = given is not None or lengths is not None
    if given is not None:
        given = _padded(b, given, key)
        if given.element is BOOL:
            allowed.append(given)
        else:
            bias = b.cast(given, query.element)
    keys = b.positions(key, 2)
    if node.attributes["left_window_size"] >= 0:
        may_be_empty = True
    allowed += _frontiers(b, node, query, key)
    if lengths is not None:
        allowed.append(keys < b.unsqueeze(b.as_i64(lengths), 1, 2, 3))
    together = b.fold("And", allowed) if allowed else None
    return Mask(bias, together, may_be_empty)


def _frontiers(b: Builder, node: Node, query: Value, key: Value) -> list[Value]:
    """Masks of the keys for each query: in causal order, and inside the window."""
    past, lengths = node.input(4), node.input(6)
    left, right = node.attributes["left_window_size"], node.attributes["right_window_size"]
    causal = node.attributes["is_causal"]
    if not causal and left < 0 and right < 0:
        return []
    start = None
    if past is not None:
        start = b.sizes(past, 2)
    elif lengths is not None:
        start = b.unsqueeze(b.as_i64(lengths) - b.sizes(query, 2), 1, 2, 3)
    distance = ahead(b, query, key, start)
    near: list[Value] = []
    if causal:
        near.append(distance <= 0)
    if left >= 0:
        near.append(distance >= -left)
    if right >= 0:
        near.append(distance <= right)
    return near


def _padded(b: Builder, mask: Value, key: Value) -> Value:
    """A mask of fewer keys, extended to all keys. The additional keys are masked."""
    shape = b.known(mask.shape, "the rank of its mask")
    last = shape[-1]
    if key.shape is not None and last == key.shape[2] and isinstance(last, int | str):
        return mask
    missing = b.sizes(key, 2) - b.sizes(mask, -1)
    masked = b.constant(False, BOOL) if mask.element is BOOL else b.like(MINUS_INFINITY, mask)
    dims = [b.sizes(mask, axis) for axis in range(len(shape) - 1)]
    return b.concat(-1, mask, b.expand(masked, *dims, missing))


def _bias(b: Builder, mask: Mask, like: Value) -> Value | None:
    """The mask as numbers to add."""
    if mask.allowed is None:
        return mask.bias
    open_bias = b.like(0.0, like) if mask.bias is None else mask.bias
    return b.where(mask.allowed, open_bias, MINUS_INFINITY)


def _seen(b: Builder, mask: Mask, bias: Value) -> Value:
    """Whether a query has any key: [..., queries, 1]."""
    seen = mask.allowed
    if mask.bias is not None or seen is None:
        seen = ~bias.equal(MINUS_INFINITY)
    most = b.op("ReduceMax", b.cast(seen, I32), [-1], keepdims=True)
    return b.cast(most, BOOL)


def attend_in_parts(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Mask,
    scale: float | None,
    softcap: float,
    precision: Element | None = None,
) -> tuple[Value, list[Value]]:
    """The attention, and the scores after each stage. The stages are scale, `softcap`, mask, and
    Softmax in `precision`."""
    key, value = (repeated(b, x, query) for x in (key, value))
    factor = _default_scale(b, query) if scale is None else b.like(scale, query)
    root = b.op("Sqrt", factor)
    stages = [b.op("MatMul", query * root, key * root, transpose_b=True)]
    if softcap:
        tamed = b.op("Tanh", stages[0] / softcap)
        stages.append(tamed * softcap)
    else:
        stages.append(stages[0])
    bias = _bias(b, mask, query)
    stages.append(b.plus(stages[1], bias))
    weights = b.op("Softmax", b.cast(stages[2], precision or query.element))
    if bias is not None and mask.may_be_empty:
        weights = b.where(_seen(b, mask, bias), weights, 0.0)
    weights = b.cast(weights, query.element)
    stages.append(weights)
    return b.op("MatMul", weights, value), stages


def _default_scale(b: Builder, query: Value) -> Value:
    """1 / sqrt(size of a head)."""
    return 1 / b.op("Sqrt", b.cast(b.sizes(query, -1), query.element))


# Into ONNX --------------------------------------------------------------------------------------


@legalizes("ScaledDotProductAttention", target="onnx")
def attention_to_onnx(b: Builder, node: Node) -> Result:
    """ScaledDotProductAttention-13 by its definition: Softmax(query * key' * scale + bias) * value.
    A sink is the score of one more key with the value 0."""
    query, key, value = required(node, 0, 1, 2)
    mask, scale, sink = node.input(3), node.input(4), node.input(5)
    rank = b.known(key.rank, "the rank of its key")
    whole = _as_attention(b, node)
    if whole is not None:
        return whole
    element = query.element
    if element is BF16:
        # Softmax and the products are in 32 bits, as in OpenVINO.
        query, key, value = (b.cast(x, F32) for x in (query, key, value))
        mask = mask if mask is None or mask.element is BOOL else b.cast(mask, F32)
        scale = None if scale is None else b.cast(scale, F32)
        sink = None if sink is None else b.cast(sink, F32)
    if scale is None:
        scale = _default_scale(b, query)
    scores = b.op("MatMul", query, b.swap_last(key, rank))
    if not is_number(scale, 1):
        scores *= scale
    if node.attributes["causal"]:
        later = b.unsqueeze(b.positions(query, -2), 1) < b.positions(key, -2)
        zero, minus = b.like(0.0, query), b.like(MINUS_INFINITY, query)
        scores += b.where(later, minus, zero)
    elif mask is not None and mask.element is BOOL:
        zero, minus = b.like(0.0, query), b.like(MINUS_INFINITY, query)
        scores += b.where(mask, zero, minus)
    elif mask is not None and not _is_zero_mask(mask):
        scores += mask
    if sink is None:
        weights = b.op("Softmax", scores)
    else:
        column = b.expand(sink, b.shape(b.op("Shape", scores)[:-1], 1))
        weights = b.cut(b.op("Softmax", b.concat(-1, scores, column)), -1, 0, -1)
    return b.cast(b.op("MatMul", weights, value), element)


def _as_attention(b: Builder, node: Node) -> Value | None:
    """Attention-23, if no mask can leave a query without a key. The two formats differ for such a
    query."""
    mask, causal = node.input(3), node.attributes["causal"]
    if node.input(5) is not None:
        return None
    if mask is not None and not causal and not _is_zero_mask(mask) and not _leaves_keys(mask):
        return None
    bias = None if mask is None or causal or _is_zero_mask(mask) else mask
    return as_attention(b, node, bias)


def as_attention(b: Builder, node: Node, mask: Value | None) -> Value | None:
    """Attention-23 in place of a ScaledDotProductAttention, with another mask. A causal attention
    ignores the mask. Only f32 is converted, because engines round narrower types at different
    places. Repeated heads of keys and values are not repeated any more."""
    query, key, value = required(node, 0, 1, 2)
    scale = node.input(4)
    factor = known_of(scale).array
    if b.opset < 23 or (scale is not None and factor is None):
        return None
    if query.rank != 4 or key.rank != 4 or value.rank != 4 or query.element is not F32:
        return None
    if not query.dims[0] == key.dims[0] == value.dims[0] or query.dims[0] == ANY:
        return None
    if mask is not None and (mask.rank not in (2, 3, 4) or mask.dims[-1] == 1):
        return None  # ONNX does not broadcast a mask's last axis.
    if mask is not None and mask.dims[-2] == 1 != query.dims[2]:
        return None  # A mask's axis of queries is not broadcast in onnxruntime.
    heads = query.dims[1]
    if not isinstance(heads, int) or not heads == key.dims[1] == value.dims[1]:
        return None
    few_keys, few_values = (_unrepeated(x) for x in (key, value))
    if few_keys is not None and few_values is not None and few_keys.dims[1] == few_values.dims[1]:
        key, value = few_keys, few_values
    given = {} if factor is None else {"scale": float(factor.reshape(-1)[0])}
    return b.op("Attention", query, key, value, mask, is_causal=node.attributes["causal"], **given)


def _leaves_keys(mask: Value) -> bool:
    """Whether a constant mask leaves at least one key for every query."""
    known = known_of(mask).array if mask.rank else None
    if known is None or mask.element not in (BOOL, F32):
        return False
    return bool((known if mask.element is BOOL else known > np.finfo(np.float32).min).any(-1).all())


def _is_zero_mask(mask: Value) -> bool:
    """Whether a mask is only the zero in front of a scale."""
    return mask.element is not BOOL and is_number(mask, 0)


def _unrepeated(x: Value) -> Value | None:
    """The heads before `repeated` repeated each of them."""
    expand = producer_of(operand_of(x, "Reshape"), "Expand")
    unsqueeze = producer_of(expand.inputs[0], "Unsqueeze") if expand else None
    if expand is None or unsqueeze is None or known_of(unsqueeze.inputs[1]).ints != (2,):
        return None
    few, times = unsqueeze.operand(0), known_of(expand.inputs[1]).ints
    if few.rank != 4 or times is None or len(times) != 5:
        return None
    heads = few.dims[1]
    if times[:2] != (1, 1) or times[3:] != (1, 1) or not isinstance(heads, int):
        return None
    same = x.dims[0] == few.dims[0] and x.dims[3] == few.dims[3]
    return few if same and x.dims[1] == heads * times[2] else None


@infers("ScaledDotProductAttention")
def infer_attention(node: Node) -> list[TensorType]:
    """ScaledDotProductAttention: [batch…, queries, size of a value]."""
    query, value = first(node), first(node, 2)
    if query.shape is None or value.shape is None:
        return [TensorType(query.element)]
    batch = broadcast(query.shape[:-2], first(node, 1).shape[:-2], value.shape[:-2])  # type: ignore[index]
    assert batch is not None
    return [TensorType(query.element, (*batch, query.shape[-2], value.shape[-1]))]


# Constraints on the inputs ------------------------------------------------------------------------


def attention(node: Node) -> must.Constraints:
    """Attention (23 to 24): queries, keys and values all of rank 3, with numbers of heads, or all
    of rank 4. Each head of keys and values serves equally many queries."""
    q, k, v = given = must.operands(node, 3)
    if not 0 <= (mode := node.attributes["qk_matmul_output_mode"]) <= 3:
        yield f"its scores have no stage {mode}"
    ranks = {x.rank for x in given if x.rank is not None}
    if ranks - {3, 4} or len(ranks) > 1:
        yield f"{q}, {k}, {v} are not all of rank 3 or all of rank 4"
        return
    for one, other in ((q, k), (k, v)):
        yield must.Same(one[0], other[0], "{} and {} differ in batches", one, other)
    yield must.Same(k[-2], v[-2], "{} and {} differ in length", k, v)
    mask, past_key, past_value = (must.Operand(node.input(index)) for index in (3, 4, 5))
    for each, past in ((k, past_key), (v, past_value)):
        if past.value is not None:
            yield must.Same(past[0], each[0], "{} and {} differ in batches", past, each)
            yield must.Sum(mask[-1], past[2], each[-2])
    yield from _counted_heads(node, given) if ranks == {3} else _axes_of_heads(q, k, v)


def _counted_heads(node: Node, operands: list[must.Operand]) -> must.Constraints:
    """Heads that attributes count in the last axis."""
    queries, keys = (node.attributes.get(name) for name in ("q_num_heads", "kv_num_heads"))
    for x, count in zip(operands, (queries, keys, keys), strict=True):
        if count is None or not must.multiple(x[2], count):
            yield f"{x} has no {count} heads"
            return
    if queries % keys:  # type: ignore[operator]
        yield f"{queries} heads of queries do not share {keys} of keys"


def _axes_of_heads(q: must.Operand, k: must.Operand, v: must.Operand) -> must.Constraints:
    """[batch, heads, length, size] of queries, keys and values."""
    yield must.Same(k[1], v[1], "{} and {} differ in heads", k, v)
    yield must.Same(q[3], k[3], "{} and {} differ in the size of a head", q, k)
    if isinstance(k[1], int) and not must.multiple(q[1], k[1]):
        yield f"{q[1]} heads of queries do not share {k[1]} of keys"


def scaled_attention(node: Node) -> must.Constraints:
    """ScaledDotProductAttention-13: queries [.., queries, size], keys [.., keys, size] and values
    [.., keys, other size], of one type."""
    q, k, v = must.operands(node, 3)
    elements = {x.value.element for x in (q, k, v) if x.value is not None} - {None}
    if len(elements) > 1:
        yield f"its inputs are {' and '.join(sorted(map(str, elements)))}"
    if any(x.rank is not None and x.rank < 2 for x in (q, k, v)):
        return
    yield must.Same(q[-1], k[-1], "{} and {} differ in the size of a head", q, k)
    yield must.Same(k[-2], v[-2], "{} and {} differ in length", k, v)


must.hold("Attention", attention)
must.hold("ScaledDotProductAttention", scaled_attention)
