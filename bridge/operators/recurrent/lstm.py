"""LSTM of ONNX for IR. ONNX orders the gates iofc, IR fico."""

from collections.abc import Sequence
from functools import partial

from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.bodies import Values
from bridge.operators.recurrent import recurrent as layers


@legalizes("LSTM", target="ir")
def lstm_to_ir(b: Builder, node: Node) -> Result:
    """LSTM as LSTMSequence, or as a Loop if peepholes, coupled gates or activations require it."""
    x, w, r = required(node, 0, 1, 2)
    bias, lengths, h, c, peepholes = (node.input(i) for i in range(3, 8))
    layer = layers.layer_of(node, 4, ("sigmoid", "tanh", "tanh"))
    total = layers.summed_bias(b, layer, 4, bias, x)
    coupled = node.attributes["input_forget"]
    if peepholes is None and not coupled and layers.fits_sequence(layer):
        weights = [
            layers.permute_gates(b, v, layers.ONNX_GATES, layers.IR_GATES, 1, layer.hidden)
            for v in (w, r, total)
        ]
        outputs = layers.to_sequence(b, layer, "LSTMSequence", x, (h, c), lengths, weights)
    else:
        if peepholes is None:
            peepholes = b.zeros(x, len(layer.directions), 3 * layer.hidden)
        step = partial(lstm_step, coupled=coupled)
        outputs = layers.to_loop(b, layer, x, (h, c), lengths, w, total, (r, peepholes), step)
    return outputs[: len(node.outputs)]


def lstm_step(
    b: Builder,
    layer: layers.RecurrentLayer,
    share: Value,
    states: Values,
    parameters: Values,
    coupled: bool,
) -> Values:
    """One step of ONNX's LSTM (equations in the documentation of the operator). `share` is the
    product of W and the input. The parameters are R [4*hidden, hidden] and, if there are any, the
    peepholes."""
    f, g, h = layer.activations[0]
    before, cell = states
    r, *peepholes = parameters
    sums = share + b.op("MatMul", before, r, transpose_b=True)
    i, o, forget, c = b.split(sums, 1, *[layer.hidden] * 4)
    peeps: Sequence[Value | None] = (None,) * 3
    if peepholes:
        peeps = b.split(peepholes[0], 0, *[layer.hidden] * 3)
    peep_i, peep_o, peep_f = peeps

    def gate(sum: Value, peep: Value | None, cell: Value) -> Value:
        return layers.activate(b, f, sum if peep is None else sum + peep * cell, layer.clip)

    i = gate(i, peep_i, cell)
    keep = 1 - i if coupled else gate(forget, peep_f, cell)
    candidate = layers.activate(b, g, c, layer.clip)
    cell = keep * cell + i * candidate
    return [gate(o, peep_o, cell) * layers.activate(b, h, cell), cell]
