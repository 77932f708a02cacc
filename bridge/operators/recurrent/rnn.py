"""RNN of ONNX; RNNCell and RNNSequence of IR."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result, legalizes
from bridge.operators.builder_helpers import required
from bridge.operators.loops import Values
from bridge.operators.recurrent import recurrent as layers


@legalizes("RNN", target="ir")
def rnn_to_ir(b: Builder, node: Node) -> Result:
    """RNNSequence, or a Loop where activations need it."""
    x, w, r, bias, lengths, h = (node.input(i) for i in range(6))
    assert x is not None and w is not None and r is not None
    layer = layers.layer_of(node, 1, ("tanh",))
    total = layers.summed_bias(b, layer, 1, bias, x)
    if layers.fits_sequence(layer):
        outputs = layers.to_sequence(b, layer, "RNNSequence", x, (h,), lengths, (w, r, total))
    else:
        outputs = layers.to_loop(b, layer, x, (h,), lengths, w, total, (r,), _step)
    return outputs[: len(node.outputs)]


def _step(
    b: Builder, layer: layers.Layer, direction: int, share: Value, states: Values, own: Values
) -> Values:
    """One step of ONNX's RNN (the equation of the operator's documentation)."""
    (f,) = layer.activations[direction]
    sums = b.op("Add", share, b.op("MatMul", states[0], own[0], transpose_b=True))
    return [layers.activate(b, f, sums, layer.clip)]


@legalizes("RNNSequence", target="onnx")
def sequence_to_onnx(b: Builder, node: Node) -> Result:
    """RNNSequence-5: RNN."""
    x, h, lengths, w, r, bias = required(node, 0, 1, 2, 3, 4, 5)
    return layers.from_sequence(
        b, node, "RNN", x, (h,), lengths, [w, r, layers.doubled_bias(b, bias)]
    )


@legalizes("RNNCell", target="onnx")
def cell_to_onnx(b: Builder, node: Node) -> Result:
    """RNNCell-1: RNN over one step."""
    _, h, w, r, bias = (node.input(i) for i in range(5))
    assert h is not None and w is not None and r is not None
    doubled = layers.doubled_bias(b, bias)
    weights: list[Value | None] = [b.unsqueeze(w, 0), b.unsqueeze(r, 0)]
    weights.append(None if doubled is None else b.unsqueeze(doubled, 0))
    return layers.from_cell(b, node, "RNN", (h,), weights)
