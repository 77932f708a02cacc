"""Two forms of attention that rules for IR write.

A mask may leave queries without a key. A Where then sets their rows of the attention's output to
zero. With fewer heads of keys than queries, the queries of all heads that share keys are rows of
one head."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value, producer_of
from bridge.neutral.inference.dims import axis_of, known_axes
from bridge.neutral.terms import Found, Op, Term, op, var
from bridge.neutral.types import BOOL, Interval
from bridge.operators.matmul.attention import as_attention
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

AXES, INFINITY = var(), float("inf")
ALLOWED, ADDED = var(BOOL), var()
"""A boolean mask that allows keys, or a mask that is added to the scores."""


def _attention(mask: Term) -> Op:
    return op("ScaledDotProductAttention", var(), var(), var(), mask, causal=False)


def _of_seen(allowed: Term, attention: Op) -> Op:
    """The output of an attention if a query sees any key, else 0. In IR, "any" is the maximum of
    integers."""
    seen = op("Cast", op("ReduceMax", op("Cast", allowed), AXES, keepdims=True), to=BOOL)
    return op("Where", seen, attention, 0)


BY_ALLOWED = _attention(op("Where", ALLOWED, 0, -INFINITY))
BY_ADDED = _attention(ADDED)
FINITE = op("Not", op("Equal", ADDED, -INFINITY)).shared()


@fuses(_of_seen(ALLOWED, BY_ALLOWED) | _of_seen(FINITE, BY_ADDED))
def masked_attention(b: Builder, match: Found, uses: Uses) -> Value | None:
    """The attention's output if a query sees any key, else zeros, as in Attention-23."""
    mask = match[ALLOWED if ALLOWED in match else ADDED]
    attention = match.node(BY_ALLOWED if ALLOWED in match else BY_ADDED)
    if mask.rank is None or known_axes(match[AXES], mask.rank) != (mask.rank - 1,):
        return None
    b.name = attention.name
    return as_attention(b, attention, mask)


QUERY = var(rank=4)
OF_ROWS = op("Attention", op("Reshape", QUERY))
BY_HEADS = op("Reshape", OF_ROWS)


@fuses(BY_HEADS, named=OF_ROWS)
def heads_that_share_keys(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Attention whose heads of queries are apart again."""
    node, query, y = match.node(OF_ROWS), match[QUERY], match[BY_HEADS]
    rows, key, mask = node.operand(0), node.operand(1), node.input(3)
    if isinstance(query.dims[2], Interval) or y.rank != 4 or y.dims[:3] != query.dims[:3]:
        return None
    if not rows.rank == key.rank == 4 or rows.dims[1] != key.dims[1] or node.inputs[4:]:
        return None
    if rows.dims[3] != query.dims[3] or any(map(uses.count, node.outputs[1:])):
        return None
    whole = None if mask is None else _by_heads(b, mask, query, rows)
    if whole is None and mask is not None:
        return None
    return b.op("Attention", query, *node.inputs[1:3], whole, **node.attributes)


def _by_heads(b: Builder, mask: Value, query: Value, rows: Value) -> Value | None:
    """The mask by heads from which the mask by rows was made; None if it was made otherwise."""
    node = producer_of(mask, "Concat", "Reshape", "Where")
    if node is None:
        return None
    source = node.operand(0)
    if node.op == "Where":
        allowed = _by_heads(b, source, query, rows)
        numbers = all(x is not None and x.rank == 0 for x in node.inputs[1:])
        return b.op("Where", allowed, *node.inputs[1:]) if allowed and numbers else None
    if node.op == "Reshape":
        apart = source.rank == mask.rank and source.dims[-3:-1] == query.dims[1:3]
        return source if apart and mask.dims[-3] == rows.dims[1] else None
    rank, groups = len(source.dims), rows.dims[1]
    if {*node.inputs} != {source} or axis_of(node, rank) != rank - 2:
        return None
    alike = source.dims[-2] == query.dims[2] and isinstance(groups, int)
    return source if alike and len(node.inputs) * groups == query.dims[1] else None  # type: ignore[operator]
