"""ScaledDotProductAttention of IR. ONNX's Attention has a standard function body for IR."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL
from bridge.rules import Refused, Result, expands
from bridge.rules.idioms import cast, positions, sizes, softmax, swap_last, unsqueeze


@expands("ScaledDotProductAttention", target="onnx")
def attention_to_onnx(b: Builder, node: Node) -> Result:
    """Its definition: Softmax(query * key' * scale + bias) * value
    (ScaledDotProductAttention-13)."""
    query, key, value, mask, scale = (node.input(i) for i in range(5))
    assert query is not None and key is not None and value is not None
    if key.rank is None:
        raise Refused("the rank of its key is unknown; give the model's inputs shapes")
    if scale is None:
        scale = b.op("Reciprocal", b.op("Sqrt", cast(b, sizes(b, query, -1), query.element)))
    scores = b.op("Mul", b.op("MatMul", query, swap_last(b, key, key.rank)), scale)
    bias = _causal_bias(b, query, key) if node.attributes["causal"] else _bias(b, mask, query)
    if bias is not None:
        scores = b.op("Add", scores, bias)
    return b.op("MatMul", softmax(b, scores), value)


def _bias(b: Builder, mask: Value | None, query: Value) -> Value | None:
    if mask is None or mask.element is not BOOL:
        return mask
    return b.op("Where", mask, b.like(0.0, query), b.like(float("-inf"), query))


def _causal_bias(b: Builder, query: Value, key: Value) -> Value:
    """-inf above the diagonal: a query sees keys up to its own position."""
    rows, columns = positions(b, query, -2), positions(b, key, -2)
    later = b.op("Less", unsqueeze(b, rows, 1), columns)
    return b.op("Where", later, b.like(float("-inf"), query), b.like(0.0, query))
