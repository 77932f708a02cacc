"""GRU of ONNX for IR. Both formats order the gates zrh.

With `linear_before_reset`, IR's B has two separate biases of the gate h: [z, r, Wh, Rh].
"""

from functools import partial

import numpy as np

from bridge.neutral.inference.known import known_of
from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.bodies import Values
from bridge.operators.recurrent import recurrent as layers


@legalizes("GRU", target="ir")
def gru_to_ir(b: Builder, node: Node) -> Result:
    """GRU as GRUSequence, or as a Loop if activations require it."""
    x, w, r = required(node, 0, 1, 2)
    bias, lengths, h = (node.input(i) for i in range(3, 6))
    layer = layers.layer_of(node, 3, ("sigmoid", "tanh"))
    if not layers.fits_sequence(layer):
        return loop_of_gru(b, node)
    linear = node.attributes["linear_before_reset"]
    total = _apart(b, layer, bias, x) if linear else layers.summed_bias(b, layer, 3, bias, x)
    outputs = layers.to_sequence(
        b, layer, "GRUSequence", x, (h,), lengths, (w, r, total), linear_before_reset=linear
    )
    return outputs[: len(node.outputs)]


def loop_of_gru(b: Builder, node: Node) -> Result:
    """GRU as a Loop for each direction."""
    x, w, r = required(node, 0, 1, 2)
    bias, lengths, h = (node.input(i) for i in range(3, 6))
    layer = layers.layer_of(node, 3, ("sigmoid", "tanh"))
    of_w, of_r = b.split(_apart(b, layer, bias, x), 1, 3 * layer.hidden, layer.hidden)
    step = partial(_step, linear=node.attributes["linear_before_reset"])
    outputs = layers.to_loop(b, layer, x, (h,), lengths, w, of_w, (r, of_r), step)
    return outputs[: len(node.outputs)]


def _apart(b: Builder, layer: layers.RecurrentLayer, bias: Value | None, x: Value) -> Value:
    """ONNX's B [directions, 6*hidden] as [z, r, Wh, Rh]; each part is [directions, hidden]."""
    hidden = layer.hidden
    if bias is None:
        return b.zeros(x, len(layer.directions), 4 * hidden)
    values = known_of(bias).array
    if values is not None:
        gates, hidden_gate = np.split(values.reshape(len(values), 2, -1), [2 * hidden], -1)
        return b.constant(np.concatenate([gates.sum(1), hidden_gate[:, 0], hidden_gate[:, 1]], -1))
    both_w, own_w, both_r, own_r = b.split(bias, 1, 2 * hidden, hidden, 2 * hidden, hidden)
    return b.concat(1, both_w + both_r, own_w, own_r)


def _step(
    b: Builder,
    layer: layers.RecurrentLayer,
    share: Value,
    states: Values,
    parameters: Values,
    linear: bool,
) -> Values:
    """One step of ONNX's GRU (the equations of the operator's documentation)."""
    f, g = layer.activations[0]
    (before,) = states
    r, bias = parameters
    hidden = layer.hidden
    gates_w, candidate_w = b.split(share, 1, 2 * hidden, hidden)
    gates_r, candidate_r = b.split(r, 0, 2 * hidden, hidden)
    sums = gates_w + b.op("MatMul", before, gates_r, transpose_b=True)
    update, reset = b.split(layers.activate(b, f, sums, layer.clip), 1, hidden, hidden)
    if linear:
        recurrent = reset * (b.op("MatMul", before, candidate_r, transpose_b=True) + bias)
    else:
        recurrent = b.op("MatMul", reset * before, candidate_r, transpose_b=True) + bias
    candidate = layers.activate(b, g, candidate_w + recurrent, layer.clip)
    return [candidate + update * (before - candidate)]
