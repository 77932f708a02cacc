"""Recurrent operators of onnxruntime's own domain, com.microsoft, for IR."""

import numpy as np

from bridge.neutral.inference import constraints as must, infers
from bridge.neutral.types import F32, I64, TensorType, Type
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required
from bridge.operators.bodies import Values
from bridge.operators.recurrent.lstm import lstm_step
from bridge.operators.recurrent.recurrent import (
    IR_GATES,
    ONNX_GATES,
    RecurrentLayer,
    fits_sequence,
    layer_of,
    permute_gates,
    summed_bias,
    to_loop,
)


@legalizes("com.microsoft::DynamicQuantizeLSTM", target="ir")
def dynamic_quantize_lstm(b: Builder, node: Node) -> Result:
    """`com.microsoft::DynamicQuantizeLSTM` (1): an LSTM with quantised weights and inputs. The
    weights are [directions, input, 4*hidden] and [directions, hidden, 4*hidden]. X is quantised as
    a whole, up to the longest sequence, and the state of all batches again in each step. A sequence
    that ended adds zeros to the state."""
    x, w, r = required(node, 0, 1, 2)
    bias, lengths, h, c, peepholes = (node.input(i) for i in range(3, 8))
    layer = layer_of(node, 4, ("sigmoid", "tanh", "tanh"))
    total = summed_bias(b, layer, 4, bias, x)
    w = b.transpose(_opened(b, w, node.input(8), node.input(9)), 0, 2, 1)
    r = b.transpose(_opened(b, r, node.input(10), node.input(11)), 0, 2, 1)
    coupled = bool(node.attributes.get("input_forget", 0))
    is_cell = peepholes is None and not coupled and fits_sequence(layer)

    def step(
        b: Builder, layer: RecurrentLayer, share: Value, states: Values, parameters: Values
    ) -> Values:
        states = [_rounded(b, states[0], states[0]), *states[1:]]
        if not is_cell:
            return lstm_step(b, layer, share, states, parameters, coupled)
        functions = tuple(function.name for function in layer.activations[0])
        sizes = {"hidden_size": layer.hidden, "clip": layer.clip}
        return b.ops("LSTMCell", 2, share, *states, *parameters, activations=functions, **sizes)

    weights = [r] if peepholes is None else [r, peepholes]
    if is_cell:
        weights = [
            permute_gates(b, v, ONNX_GATES, IR_GATES, 1, layer.hidden) for v in (w, r, total)
        ]
    share = None if is_cell else w
    seen = x
    if lengths is not None:
        longest = b.op("ReduceMax", b.cast(lengths, I64), None, keepdims=True)
        seen = b.cut(x, int(layer.batch_first), 0, longest)
    inputs = _rounded(b, x, seen)
    outputs = to_loop(b, layer, inputs, (h, c), lengths, share, total, weights, step, aligned=True)
    return outputs[: len(node.outputs)]


@infers("com.microsoft::DynamicQuantizeLSTM")
def types_of_lstm(node: Node) -> list[Type]:
    """DynamicQuantizeLSTM: Y [length, directions, batch, hidden], the states [directions, batch,
    hidden]. With `layout` the batch comes first."""
    x, layer = required(node, 0)[0], layer_of(node, 4, ("sigmoid", "tanh", "tanh"))
    if x.rank != 3:
        return []
    ways = len(layer.directions)
    if layer.batch_first:
        batch, length, _ = x.dims
        shapes = [(batch, length, ways, layer.hidden), *[(batch, ways, layer.hidden)] * 2]
    else:
        length, batch, _ = x.dims
        shapes = [(length, ways, batch, layer.hidden), *[(ways, batch, layer.hidden)] * 2]
    return [TensorType(x.element, shape) for shape in shapes[: len(node.outputs)]]


def _opened(b: Builder, weights: Value, scale: Value | None, zero_point: Value | None) -> Value:
    """Dequantised weights. Their scales are [directions] or [directions, 4*hidden]."""
    if scale is None or scale.rank not in (1, 2):
        raise Refused("its weights need scales of a known rank")
    axes = (1,) if scale.rank == 2 else (1, 2)
    values = b.cast(weights, F32)
    if zero_point is not None:
        values -= b.unsqueeze(b.cast(zero_point, F32), *axes)
    return values * b.unsqueeze(scale, *axes)


SMALLEST = float(np.finfo(np.float32).tiny)
"""A scale above 0 for a tensor of zeros."""


def _rounded(b: Builder, x: Value, seen: Value) -> Value:
    """Floats after DynamicQuantizeLinear and DequantizeLinear, by the range of those that are
    `seen`. The integers between them, less the zero point, stay floats, which hold them exactly."""
    low = b.min(b.op("ReduceMin", seen, None, keepdims=False), b.like(0.0, x))
    high = b.max(b.op("ReduceMax", seen, None, keepdims=False), b.like(0.0, x))
    scale = b.max((high - low) / b.like(255.0, x), b.like(SMALLEST, x))
    most = b.op("Round", low / scale) + b.like(255.0, x)
    # No float is below the lowest one, and so is no integer.
    return b.min(b.op("Round", x / scale), most) * scale


must.hold("com.microsoft::DynamicQuantizeLSTM", *must.have_ranks(3, 3, 3))
