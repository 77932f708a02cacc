"""Attention with a mask that may leave queries without a key: ScaledDotProductAttention, of which
such rows are made zero."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.terms import Found, Op, Term, op, var
from bridge.neutral.types import BOOL
from bridge.operators.matmul.attention import as_attention
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

AXES, INFINITY = var(), float("inf")
ALLOWED, ADDED = var(BOOL), var()
"""A mask that says which keys count, or one that is added to the scores."""


def _attention(mask: Term) -> Op:
    return op("ScaledDotProductAttention", var(), var(), var(), mask, causal=False)


def _of_seen(allowed: Term, attention: Op) -> Op:
    """What an attention gives where a query sees any key, else 0. IR has the greatest of integers
    for what holds anywhere."""
    seen = op("Cast", op("ReduceMax", op("Cast", allowed), AXES, keepdims=True), to=BOOL)
    return op("Where", seen, attention, 0)


BY_ALLOWED = _attention(op("Where", ALLOWED, 0, -INFINITY))
BY_ADDED = _attention(ADDED)
FINITE = op("Not", op("Equal", ADDED, -INFINITY)).shared()


@fuses(_of_seen(ALLOWED, BY_ALLOWED) | _of_seen(FINITE, BY_ADDED))
def masked_attention(b: Builder, found: Found, uses: Uses) -> Value | None:
    """Where a query sees any key, what the attention gives; else zeros, as of Attention-23."""
    mask = found[ALLOWED if ALLOWED in found else ADDED]
    attention = found.node(BY_ALLOWED if ALLOWED in found else BY_ADDED)
    if mask.rank is None or known_axes(found[AXES], mask.rank) != (mask.rank - 1,):
        return None
    b.name = attention.name
    return as_attention(b, attention, mask)
