"""`com.microsoft::GroupQueryAttention` as onnxruntime-genai writes it (onnxruntime's
ContribOperators, and its `contrib_ops/cpu/bert/gqa_attention_base.h`)."""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

from bridge.neutral.inference import constraints as must
from bridge.neutral.types import F32, I8, I32, U8, Element
from bridge.operators import (
    Builder,
    Node,
    Refused,
    Result,
    Value,
    attributes_beside,
    legalizes,
    required,
)
from bridge.operators.matmul.attention import (
    MINUS_INFINITY,
    Mask,
    attend,
    by_heads,
    joined_heads,
    repeated,
)
from bridge.operators.microsoft.attention import scale_of
from bridge.operators.microsoft.rotary_embedding import rotated

CONSECUTIVE = "calls_are_consecutive"
"""An attribute of Bridge for a node with an IR variable as its cache. The new keys of a call follow
all keys of the variable, and `total_sequence_length` counts both."""

TOLD = "places_are_told"
"""An attribute of Bridge for such a node after it gets `position_ids`: an input has the positions
(`passes/state/followers.py`)."""


@legalizes("com.microsoft::GroupQueryAttention", target="ir")
def group_query_attention(b: Builder, node: Node) -> Result:
    """`com.microsoft::GroupQueryAttention` (1): causal attention with a cache of keys and values.
    The new keys are written at the end of each sequence of the batch, and zeros follow them,
    whatever the cache had there. `seqlens_k` is the number of keys of a sequence less one."""
    attributes: dict[str, Any] = node.attributes
    query, total = required(node, 0, 6)
    pasts = node.input(3), node.input(4)
    query, key, value = _by_heads(b, node, query)
    query, key = _normalized(b, node, query, 14, "q"), _normalized(b, node, key, 15, "k")
    frame = _frame(b, node, query, pasts[0])
    query, key = (_rotated(b, node, x, frame.new) for x in (query, key))
    present, read = [key, value], [key, value]
    for i, (past, new) in enumerate(zip(pasts, (key, value), strict=True)):
        if past is None:
            continue
        store = _store(b, node, i, past, new)
        new = store.closed(b, new)
        present[i] = _written(b, past, new, frame)
        all_keys = b.concat(2, past, new) if frame.in_window else present[i]
        read[i] = b.cast(store.opened(b, all_keys), query.element)
    key, value = read
    bias, allowed = node.input(10), frame.allowed
    if bias is not None and frame.in_window:
        # The bias has the absolute places of keys on its last axis.
        bias = b.expand(bias, frame.batch, 1, 1, 1)
        bias = b.op("Gather", bias, b.min(frame.places, b.as_i64(total) - 1), 3, batch_dims=1)
    elif bias is not None and frame.sources is not None:
        # The bias has `total` keys, but the cache may be longer and keeps its length.
        end = b.reshape(b.as_i64(total), 1)
        key, value = b.cut(key, 2, 0, end), b.cut(value, 2, 0, end)
        allowed = b.cut(allowed, 3, 0, end)
    mask = Mask(bias, allowed, False)
    sink, smooth = node.input(11), attributes.get("smooth_softmax", -1) > 0
    if sink is None and smooth:
        sink = b.like([0.0], query)
    if sink is not None:
        key, value, mask = _with_sink(b, sink, query, key, value, bias, allowed)
    elif attributes.get(CONSECUTIVE) and key is present[0]:
        key, value = repeated(b, key, query), repeated(b, value, query)  # See `is_cache`.
    softcap = attributes.get("softcap", 0.0)
    y = attend(b, query, key, value, mask, scale_of(node), softcap, length=frame.length)
    return [joined_heads(b, y), *present][: len(node.outputs)]


@legalizes("com.microsoft::GroupQueryAttention", target="onnx")
def without_variables(b: Builder, node: Node) -> Result:
    """`com.microsoft::GroupQueryAttention` (1) with its cache as input and output again."""
    if "com.microsoft" not in b.domains:
        return group_query_attention(b, node)
    if CONSECUTIVE not in node.attributes:
        return None
    inputs = list(node.inputs)
    if TOLD in node.attributes:
        inputs[9] = None
    rest = attributes_beside(node, CONSECUTIVE, TOLD)
    return b.ops(node.op, len(node.outputs), *inputs, **rest)


def _lengths(node: Node) -> must.Constraints:
    """The longest sequence of the batch has all keys; the cache grows by the new ones. It has room
    for them already if some may be padding, or for a window. It has the size of the heads."""
    query, past, added = (must.Operand(node.input(i)) for i in (0, 3, 16))
    sizes = (0 if past.value is None else past[2], query[1])
    if added.value is not None:
        sizes = (0, sizes[0])
        yield must.Count(added.value, (0, query[1]))
    if node.attributes.get("sliding_window_cache") and past.value is not None:
        yield must.Least(past[2], node.attributes.get("local_window_size", 1))
    yield must.Count(node.input(5), sizes, -1)
    yield must.Count(node.input(6), sizes)
    heads, groups = (node.attributes[name] for name in ("num_heads", "kv_num_heads"))
    together = heads + 2 * groups if node.input(1) is None else heads
    packed = 2 if node.attributes.get("kv_cache_bit_width") == 4 else 1
    if past.value is not None and isinstance(query[2], int):
        size = query[2] // together // packed
        yield must.Same(past[3], size, "its cache is {}, for heads of {}", past, size)


must.hold("com.microsoft::GroupQueryAttention", *must.have_ranks(3, 3, 3, 4, 4), _lengths)


def _by_heads(b: Builder, node: Node, query: Value) -> list[Value]:
    """Queries, keys and values split into heads. The first input has them if they are packed."""
    heads, groups = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    key, value = node.input(1), node.input(2)
    if key is None or value is None:
        together = by_heads(b, query, heads + 2 * groups)
        return b.split(together, 1, heads, groups, groups)
    return [by_heads(b, query, heads), by_heads(b, key, groups), by_heads(b, value, groups)]


def _rotated(b: Builder, node: Node, x: Value, places: Value) -> Value:
    """Queries or keys, rotated if the node says so, by the given positions, or by `places` without
    them. Without a cache, the first given position is the one of the first key of all sequences."""
    cos, sin, given = (node.input(i) for i in (7, 8, 9))
    interleaved = bool(node.attributes.get("rotary_interleaved", 0))
    if not node.attributes.get("do_rotary", 0):
        return x
    cos, sin = required(node, 7, 8)
    if given is not None and node.input(3) is None:
        given = places + b.take(b.take(given, 0, 0), 1, 0)
    return rotated(b, x, places if given is None else given, cos, sin, interleaved)


@dataclass(frozen=True)
class _Frame:
    """The values that depend on lengths alone and are the same in all layers of a model. `batch`
    and `length` are the sizes of the batch and of the queries, 1-D. `new` has the positions of the
    new keys, [batch, new]. `sources` has the sources of the keys of a grown cache, [batch, keys];
    without it, the new keys follow the cache. `allowed` is the mask of the keys that a query may
    read. If the cache is `in_window`, these are its keys before the call and the new ones, at the
    `places` [batch, keys]."""

    batch: Value
    length: Value
    new: Value
    sources: Value | None
    allowed: Value
    places: Value
    in_window: bool = False


def _frame(b: Builder, node: Node, query: Value, past: Value | None) -> _Frame:
    """The frame of a node. Nodes share a frame if they have the same inputs of lengths. In the
    file, their queries and their caches must then have the same symbols as lengths."""
    seqlens, total = required(node, 5, 6)
    causal = bool(node.attributes.get("causal", 1))
    window = node.attributes.get("local_window_size", -1)
    in_window = bool(node.attributes.get("sliding_window_cache", 0)) and past is not None
    length = _length(b, query, seqlens)
    if past is not None and node.attributes.get(CONSECUTIVE):
        of_all = (seqlens, total, length, causal, window)
        return b.once(of_all, lambda: _frame_of_all(b, *of_all))
    held = None if past is None else _length(b, past, seqlens)
    given = (seqlens, total, node.input(16), length, held, causal, window, in_window)
    return b.once(given, lambda: _frame_of_each(b, *given))


def _length(b: Builder, x: Value, seqlens: Value) -> Value:
    """The length of [batch, heads, length, size], 1-D. Values with the same symbol, or with the
    same known length, share the result."""
    length = x.dims[2]
    alike: Hashable = length if isinstance(length, int | str) else x
    return b.once((seqlens, alike), partial(b.sizes, x, 2))


def _frame_of_each(
    b: Builder,
    seqlens: Value,
    total: Value,
    added: Value | None,
    length: Value,
    held: Value | None,
    causal: bool,
    window: int,
    in_window: bool,
) -> _Frame:
    """The frame if the keys of each sequence end at a separate position. `added` has the number of
    new keys of each sequence, if others are padding behind them."""
    lengths = b.reshape(b.as_i64(seqlens) + 1, -1, 1)
    batch, row = b.sizes(lengths, 0), _counted(b, length)
    if held is None:
        sources, places, behind = None, row, b.unsqueeze(row, 0)
        new = b.expand(behind, batch, length)
    else:
        if added is not None:
            added = b.reshape(b.as_i64(added), -1, 1)
        start = b.max(lengths - length, 0) if added is None else lengths - added
        # `_written` concatenates the new keys, one zero and the cache. A key of the cache has
        # moved to the front by as many keys as left the window.
        places = _counted(b, held if in_window else b.max(b.reshape(b.as_i64(total), 1), held))
        behind, kept, new = places - start, places + (length + 1), row + start
        if in_window:
            first, next_first = (_first_in_window(b, n, held, window) for n in (start, lengths))
            behind, kept = behind + next_first, kept + (next_first - first)
        if added is not None:  # Zeros follow the new keys, as where there are no more.
            behind = b.where(behind < added, behind, length)
        sources = b.where(behind < 0, kept, b.min(behind, length))
        if in_window:
            old = _counted(b, held) - (start - first)
            behind = b.concat(1, b.where(old < 0, old, length), b.expand(row, batch, length))
            places = behind + start
    if causal:
        allowed = _seen(b.unsqueeze(behind, 1, 2), b.unsqueeze(row, 1), window)
    else:
        allowed = places < b.unsqueeze(lengths, 2, 3)
    return _Frame(batch, length, new, sources, allowed, places, in_window)


def _first_in_window(b: Builder, lengths: Value, held: Value, window: int) -> Value:
    """The position of the first key of a cache of the length `held` after `lengths` keys. If the
    cache is full, all keys leave it that no later query reads."""
    freed = b.max(held - (window - 1), 1)
    return b.max(lengths - window, 0) / freed * freed


def _frame_of_all(
    b: Builder, seqlens: Value, total: Value, length: Value, causal: bool, window: int
) -> _Frame:
    """The frame if all keys end at one position. Shorter sequences begin later, as the tokenizers
    of OpenVINO GenAI and of transformers pad them."""
    lengths = b.reshape(b.as_i64(seqlens) + 1, -1, 1)
    whole = b.reshape(b.as_i64(total), 1)
    batch, row, places = b.sizes(lengths, 0), _counted(b, length), _counted(b, whole)
    new = b.max(row + (lengths - length), 0)
    queries = b.unsqueeze(row + (whole - length), 1)
    seen = _seen(places, queries, window) if causal else None
    if batch.known_value != (1,) or seen is None:
        begun = places >= whole - lengths
        # A padded query must read at least one key: its own.
        begun = b.unsqueeze(begun, 1, 2) | places.equal(queries)
        allowed = begun if seen is None else begun & seen
    else:
        allowed = b.unsqueeze(seen, 0, 1)
    return _Frame(batch, length, new, None, allowed, places)


def _counted(b: Builder, length: Value) -> Value:
    """The numbers 0, 1, 2, ... below a 1-D number."""
    return b.op("Range", 0, length[0], 1)


def _seen(keys: Value, queries: Value, window: int) -> Value:
    """A mask of the keys that a query reads, by the positions of both. These are the keys up to the
    query's position and within the window."""
    seen = keys <= queries
    if window <= 0:
        return seen
    return seen & (keys > queries - window)


def _written(b: Builder, past: Value, new: Value, frame: _Frame) -> Value:
    """The cache with the new keys in it, and zeros behind them. onnxruntime copies only the used
    part of each sequence."""
    if frame.sources is None:
        return b.concat(2, past, new)
    zeros = b.zeros(new, frame.batch, b.dim(new, 1), 1, b.dim(new, 3))
    return b.op("Gather", b.concat(2, new, zeros, past), frame.sources, 2, batch_dims=1)


def _normalized(b: Builder, node: Node, x: Value, index: int, name: str) -> Value:
    """Queries or keys divided by the root mean square of each head, if the input has weights."""
    weights, attributes = node.input(index), node.attributes
    if weights is None:
        return x
    epsilon = attributes.get(f"{name}_norm_epsilon", attributes.get("qk_norm_epsilon", 1e-6))
    return b.op("RMSNormalization", x, weights, epsilon=epsilon)


@dataclass(frozen=True)
class _Store:
    """The form of keys or values in a cache: as they are, without a `scale`, or as integers of 8
    bits, or two of 4 bits in a byte. The first of them is in the lower bits."""

    element: Element
    scale: Value | None = None
    bits: int = 8

    def closed(self, b: Builder, x: Value) -> Value:
        """New keys as in the cache."""
        if self.scale is None:
            return b.cast(x, self.element)
        most = 1 << self.bits - 1
        whole = b.op("Clip", b.op("Round", x / self.scale), float(-most), most - 1.0)
        if self.bits == 4:
            low, high = b.split(b.reshape(whole + 8.0, 0, 0, 0, -1, 2), 4, 1, 1)
            whole = b.reshape(low + high * 16.0, 0, 0, 0, -1)
        return b.cast(whole, self.element)

    def opened(self, b: Builder, x: Value) -> Value:
        """Keys of the cache as numbers."""
        if self.scale is None:
            return x
        if self.bits == 4:
            byte = b.cast(x, I32)
            pairs = b.concat(4, b.unsqueeze(byte % 16, 4), b.unsqueeze(byte / 16, 4))
            x = b.reshape(pairs - 8, 0, 0, 0, b.sizes(x, 3) * 2)
        return b.cast(x, self.scale.element) * self.scale


def _store(b: Builder, node: Node, index: int, past: Value, new: Value) -> _Store:
    """The form of the cache `past` of `new` keys or values, which are input 3 + `index`."""
    element, scale = past.element or new.element, node.input(12 + index)
    kind = node.attributes.get("kv"[index] + "_quant_type", "NONE")
    bits = node.attributes.get("kv_cache_bit_width", 8)
    if kind == "NONE" or scale is None or element is None:
        return _Store(element or F32)
    if (element, bits) not in ((I8, 8), (U8, 4)):
        raise Refused(f"its cache of {element} with kv_cache_bit_width = {bits} is not supported")
    if kind == "PER_CHANNEL":
        scale = b.reshape(scale, 1, node.attributes["kv_num_heads"], 1, -1)
    else:
        scale = b.reshape(scale, 1)
    return _Store(element, b.cast(scale, new.element), bits)


def _with_sink(
    b: Builder,
    sink: Value,
    query: Value,
    key: Value,
    value: Value,
    bias: Value | None,
    allowed: Value,
) -> tuple[Value, Value, Mask]:
    """Adds a key with the score of the head's sink and the value 0. The key has a share of the
    softmax but adds 0 to the result."""
    empty = [b.cut(x * 0, 2, 0, 1) for x in (key, value)]
    scores = b.where(allowed, b.like(0.0, query) if bias is None else bias, MINUS_INFINITY)
    column = b.shape(b.sizes(query, 0, 1, 2), 1)
    parts = b.expand(scores, column), b.expand(b.reshape(sink, -1, 1, 1), column)
    return (
        b.concat(2, key, empty[0]),
        b.concat(2, value, empty[1]),
        Mask(b.concat(3, *parts), None, False),
    )
