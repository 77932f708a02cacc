"""RNN of ONNX for IR."""

from bridge.operators import Builder, Node, Result, Value, legalizes, required
from bridge.operators.bodies import Values
from bridge.operators.recurrent import recurrent as layers


@legalizes("RNN", target="ir")
def rnn_to_ir(b: Builder, node: Node) -> Result:
    """RNN as RNNSequence, or as a Loop if activations require it."""
    x, w, r = required(node, 0, 1, 2)
    bias, lengths, h = (node.input(i) for i in range(3, 6))
    layer = layers.layer_of(node, 1, ("tanh",))
    total = layers.summed_bias(b, layer, 1, bias, x)
    if layers.fits_sequence(layer):
        outputs = layers.to_sequence(b, layer, "RNNSequence", x, (h,), lengths, (w, r, total))
    else:
        outputs = layers.to_loop(b, layer, x, (h,), lengths, w, total, (r,), _step)
    return outputs[: len(node.outputs)]


def _step(
    b: Builder,
    layer: layers.RecurrentLayer,
    share: Value,
    states: Values,
    parameters: Values,
) -> Values:
    """One step of ONNX's RNN (equation in the documentation of the operator)."""
    (f,) = layer.activations[0]
    sums = share + b.op("MatMul", states[0], parameters[0], transpose_b=True)
    return [layers.activate(b, f, sums, layer.clip)]
