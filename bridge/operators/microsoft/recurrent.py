"""Recurrent operators of onnxruntime's own domain, com.microsoft, for IR."""

from __future__ import annotations

from bridge.neutral.types import F32
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required
from bridge.operators.recurrent.lstm import lstm_step
from bridge.operators.recurrent.recurrent import RecurrentLayer, layer_of, summed_bias, to_loop


@legalizes("com.microsoft::DynamicQuantizeLSTM", target="ir")
def dynamic_quantize_lstm(b: Builder, node: Node) -> Result:
    """`com.microsoft::DynamicQuantizeLSTM` (1): an LSTM with quantised weights and inputs. The
    weights are [directions, input, 4*hidden] and [directions, hidden, 4*hidden]. X is quantised as
    a whole, and the state of all batches again in each step. Backwards, onnxruntime begins with the
    last element of each sequence, but this conversion begins with the longest sequence. Rounding
    therefore differs if sequences differ in length."""
    x, w, r = required(node, 0, 1, 2)
    bias, lengths, h, c, peepholes = (node.input(i) for i in range(3, 8))
    layer = layer_of(node, 4, ("sigmoid", "tanh", "tanh"))
    total = summed_bias(b, layer, 4, bias, x)
    if peepholes is None:
        peepholes = b.zeros(x, len(layer.directions), 3 * layer.hidden)
    w = b.transpose(_opened(b, w, node.input(8), node.input(9)), 0, 2, 1)
    r = b.transpose(_opened(b, r, node.input(10), node.input(11)), 0, 2, 1)
    coupled = bool(node.attributes.get("input_forget", 0))

    def step(
        b: Builder,
        layer: RecurrentLayer,
        way: int,
        share: Value,
        states: list[Value],
        own: list[Value],
    ) -> list[Value]:
        states = [_rounded(b, states[0]), *states[1:]]
        return lstm_step(b, layer, way, share, states, own, coupled)

    outputs = to_loop(b, layer, _rounded(b, x), (h, c), lengths, w, total, (r, peepholes), step)
    return outputs[: len(node.outputs)]


def _opened(b: Builder, weights: Value, scale: Value | None, zero_point: Value | None) -> Value:
    """Dequantised weights. Their scales are [directions] or [directions, 4*hidden]."""
    if scale is None or scale.rank not in (1, 2):
        raise Refused("its weights need scales of a known rank")
    axes = (1,) if scale.rank == 2 else (1, 2)
    values = b.cast(weights, F32)
    if zero_point is not None:
        values -= b.unsqueeze(b.cast(zero_point, F32), *axes)
    return values * b.unsqueeze(scale, *axes)


def _rounded(b: Builder, x: Value) -> Value:
    """Floats after quantisation and dequantisation."""
    return b.op("DequantizeLinear", *b.ops("DynamicQuantizeLinear", 3, x))
