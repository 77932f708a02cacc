"""What a node costs, in multiplications of numbers."""

from __future__ import annotations

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.types import Dim


def multiplications(graph: Graph) -> int:
    """Those of matrix products, convolutions and recurrent layers; an open size counts as 1, as do
    the iterations of a Loop."""
    return sum(map(_of_node, graph.walk()))


def _of_node(node: Node) -> int:
    made = _elements(node.outputs[0]) if node.outputs else 0
    if node.op in ("MatMul", "Gemm"):
        first = _dims(node.inputs[0])
        is_turned = node.op == "Gemm" and bool(node.attributes.get("transA"))
        return made * (_size(first[0 if is_turned else -1]) if first else 1)
    if node.op.startswith(("Conv", "GroupConv")) and len(node.inputs) > 1:
        weights = _dims(node.inputs[1])
        return made * _elements(node.inputs[1]) // max(_size(weights[0]) if weights else 1, 1)
    if node.op in ("LSTM", "GRU", "RNN") and len(node.inputs) > 2:
        steps = _elements(node.inputs[0]) // max(_size(_dims(node.inputs[0])[-1]), 1)
        return steps * (_elements(node.inputs[1]) + _elements(node.inputs[2]))
    return 0


def _dims(value: Value | None) -> tuple[Dim, ...]:
    return () if value is None or value.shape is None else value.shape


def _size(dim: Dim) -> int:
    return dim if isinstance(dim, int) else 1


def _elements(value: Value | None) -> int:
    count = 1
    for dim in _dims(value):
        count *= _size(dim)
    return count
