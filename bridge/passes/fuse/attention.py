"""Attention with a mask that may leave queries without a key: ScaledDotProductAttention, of which
such rows are made zero."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_integers
from bridge.neutral.types import BOOL
from bridge.operators.matmul.attention import as_attention
from bridge.passes.fuse.uses import Uses, either_way, is_number


def masked_attention(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Where a query sees any key, what the attention gives; else zeros, as of Attention-23."""
    seen, y, otherwise = node.inputs
    attention = uses.single_use(y, "ScaledDotProductAttention")
    if attention is None or attention.attributes["causal"] or not is_number(otherwise, 0):
        return None
    mask = _mask(attention.input(3), _any_of(seen, uses), uses)
    if mask is None:
        return None
    b.name = attention.name
    return as_attention(b, attention, mask)


def _any_of(seen: Value | None, uses: Uses) -> Value | None:
    """What holds along the last axis somewhere, as IR says it, by the greatest of integers."""
    truth = uses.single_use(seen, "Cast")
    most = uses.single_use(truth.inputs[0], "ReduceMax") if truth is not None else None
    number = uses.single_use(most.inputs[0], "Cast") if most is not None else None
    if truth is None or most is None or number is None or truth.attributes["to"] is not BOOL:
        return None
    whole = number.inputs[0]
    if whole is None or whole.element is not BOOL or whole.rank is None:
        return None
    axes = known_integers(most.input(1))
    last = most.attributes["keepdims"] and axes in ((-1,), (whole.rank - 1,))
    return whole if last else None


def _mask(bias: Value | None, allowed: Value | None, uses: Uses) -> Value | None:
    """The mask of which one form is added to the scores, and the other says what is allowed."""
    maker = allowed.producer if allowed is not None else None
    written = uses.single_use(bias, "Where")
    if written is not None and written.inputs[0] is allowed:
        _, zero, minus = written.inputs
        return allowed if is_number(zero, 0) and is_number(minus, float("-inf")) else None
    compared = uses.single_use(maker.inputs[0], "Equal") if maker is not None else None
    if maker is None or maker.op != "Not" or compared is None:
        return None
    for value, minus in either_way(compared):
        if value is bias and is_number(minus, float("-inf")):
            return value
    return None
