"""Inference: recurrent layers."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.types import ANY, Dim, TensorType


def _dim(node: Node, index: int, axis: int) -> Dim:
    shape = first(node, index).shape
    return ANY if shape is None else shape[axis]


def _hidden(node: Node) -> Dim:
    return node.attributes.get("hidden_size") or _dim(node, 2, 2)


@infers("LSTM", "GRU", "RNN")
def onnx_layer(node: Node) -> list[TensorType]:
    """Y [seq, directions, batch, hidden] and the states [directions, batch, hidden]; with
    `layout` 1 the batch comes first."""
    element = first(node).element
    ways = 2 if node.attributes["direction"] == "bidirectional" else 1
    hidden = _hidden(node)
    outer, inner = _dim(node, 0, 0), _dim(node, 0, 1)
    if node.attributes.get("layout", 0) == 1:
        y = TensorType(element, (outer, inner, ways, hidden))
        state = TensorType(element, (outer, ways, hidden))
    else:
        y = TensorType(element, (outer, ways, inner, hidden))
        state = TensorType(element, (ways, inner, hidden))
    return [y, state, state]


@infers("LSTMSequence", "GRUSequence", "RNNSequence")
def ir_sequence(node: Node) -> list[TensorType]:
    """Y [batch, directions, seq, hidden] and the states [batch, directions, hidden]."""
    element = first(node).element
    ways = 2 if node.attributes["direction"] == "bidirectional" else 1
    hidden = node.attributes["hidden_size"]
    batch, seq = _dim(node, 0, 0), _dim(node, 0, 1)
    state = TensorType(element, (batch, ways, hidden))
    return [TensorType(element, (batch, ways, seq, hidden)), state, state]


@infers("LSTMCell", "GRUCell", "RNNCell")
def ir_cell(node: Node) -> list[TensorType]:
    """The states, [batch, hidden]."""
    state = TensorType(first(node).element, (_dim(node, 0, 0), node.attributes["hidden_size"]))
    return [state, state]


@infers("CausalConvWithState")
def causal_conv(node: Node) -> list[TensorType]:
    """The output is like the input [batch, channels, length], the state has kernel - 1 elements."""
    x, weight = first(node), first(node, 1)
    batch, channels = _dim(node, 0, 0), _dim(node, 0, 1)
    kernel = None if weight.shape is None else weight.shape[-1]
    past: Dim = kernel - 1 if isinstance(kernel, int) else ANY
    return [x, TensorType(x.element, (batch, channels, past))]
