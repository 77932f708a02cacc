"""LSTM, GRU and RNN of ONNX, made from the cells and sequences of IR."""

import math
from collections.abc import Sequence

import numpy as np

from bridge.neutral.graph import operand_of, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import I32
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, required
from bridge.operators.recurrent.recurrent import IR_GATES, ONNX_GATES, permute_gates, splits
from bridge.operators.recurrent.whole_length import is_whole_length

_STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}


@legalizes("GRUSequence", "LSTMSequence", "RNNSequence", target="onnx")
def sequence_to_onnx(b: Builder, node: Node) -> Result:
    """GRUSequence-5, LSTMSequence-5 and RNNSequence-5 as GRU, LSTM and RNN. ONNX's defaults replace
    lengths equal to the whole length, and states of zeros."""
    op = node.op.removesuffix("Sequence")
    count = _STATES[op]
    x, *states = required(node, *range(1 + count))
    lengths, w, r, bias = required(node, *range(1 + count, 5 + count))
    weights = _weights(b, node, op, w, r, bias)
    direction = node.attributes["direction"]
    time_major = b.transpose(x, 1, 0, 2)
    y, *last = b.ops(
        op,
        1 + count,
        time_major,
        *weights,
        None if is_whole_length(lengths, x) else b.cast(lengths, I32),
        *(None if _is_zero(s) else b.transpose(s, 1, 0, 2) for s in states),
        direction=direction,
        **_attributes(node, op, 2 if direction == "bidirectional" else 1),
    )
    return [b.transpose(y, 2, 1, 0, 3), *(b.transpose(s, 1, 0, 2) for s in last)]


@legalizes("GRUCell", "LSTMCell", "RNNCell", target="onnx")
def cell_to_onnx(b: Builder, node: Node) -> Result:
    """GRUCell-3, LSTMCell (1 to 4) and RNNCell-1 as GRU, LSTM and RNN over one step. Files may have
    attributes of LSTMCell-1 beyond its specification (weights_format, input_forget and peepholes).
    These have no effect."""
    op = node.op.removesuffix("Cell")
    count = _STATES[op]
    x, *states = required(node, *range(1 + count))
    w, r = required(node, 1 + count, 2 + count)
    weights = _weights(b, node, op, w, r, node.input(3 + count))
    batched = [None if v is None else b.unsqueeze(v, 0) for v in weights]
    first = b.constant([0])
    _, *last = b.ops(
        op,
        1 + count,
        b.op("Unsqueeze", x, first),
        *batched,
        None,
        *(b.op("Unsqueeze", s, first) for s in states),
        **_attributes(node, op, 1),
    )
    return [b.squeeze(s, 0) for s in last]


def _weights(
    b: Builder, node: Node, op: str, w: Value, r: Value, bias: Value | None
) -> Sequence[Value | None]:
    """W, R and B of an IR cell or sequence, in the layout of ONNX's `op`. A sequence already has
    the axis of directions."""
    if op == "LSTM":
        axis, hidden = int(node.op == "LSTMSequence"), node.attributes["hidden_size"]
        w, r = (permute_gates(b, v, IR_GATES, ONNX_GATES, axis, hidden) for v in (w, r))
        if bias is not None:
            bias = permute_gates(b, bias, IR_GATES, ONNX_GATES, axis, hidden)
    if bias is not None:
        apart = node.attributes.get("linear_before_reset", False)
        bias = _bias_apart(b, node, bias) if apart else _doubled_bias(b, bias)
    return w, r, bias


def _is_zero(state: Value) -> bool:
    """Whether a state is zeros, also with a computed shape."""
    known = known_of(state.behind("Cast", traits=frozenset({"moves", "repeats"}))).array
    return known is not None and not known.any()


_FUNCTIONS = {
    "LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"],
}  # fmt: skip
"""The default activations of a direction."""


def _attributes(node: Node, op: str, directions: int) -> dict[str, object]:
    """The attributes of an IR cell or sequence for ONNX's `op`."""
    attributes = node.attributes
    names = {
        "sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu", "hardsigmoid": "HardSigmoid",
        "softsign": "Softsign",
    }  # fmt: skip
    # Files may add the activations of a backward direction behind the forward ones. The first ones
    # apply to both directions.
    activations = []
    for name in attributes["activations"][: len(_FUNCTIONS[op])]:
        if name.lower() not in names:
            raise Refused(f"ONNX has no activation {name} in this operator")
        activations.append(names[name.lower()])
    result: dict[str, object] = {"hidden_size": attributes["hidden_size"]}
    if activations and activations != _FUNCTIONS[op]:
        result["activations"] = tuple(activations) * directions
    for key, name in (("activations_alpha", "activation_alpha"),
                      ("activations_beta", "activation_beta")):  # fmt: skip
        if attributes[key]:
            result[name] = attributes[key] * directions
    if "linear_before_reset" in attributes:
        result["linear_before_reset"] = attributes["linear_before_reset"]
    if 0 < attributes["clip"] < math.inf:
        result["clip"] = attributes["clip"]
    return result


def _doubled_bias(b: Builder, bias: Value) -> Value | None:
    """IR's summed biases [..., n] as ONNX's [..., 2n]: the biases as the part of W, and zeros as
    the part of R. None if all are zeros."""
    values = known_of(bias).array
    if values is not None and not values.any():
        return None
    if values is not None:
        return b.constant(np.concatenate([values, np.zeros_like(values)], -1))
    whole = _halved(bias)
    if whole is not None:
        return whole
    return b.op("Concat", bias, b.zeros(bias, b.op("Shape", bias)), axis=-1)


def _halved(bias: Value) -> Value | None:
    """The biases before `summed_bias` added their halves."""
    added = producer_of(bias, "Add")
    halves = producer_of(operand_of(bias, "Add"), "Split")
    width = bias.shape[-1] if bias.shape else None
    if added is None or halves is None or not isinstance(width, int):
        return None
    cut = splits(halves, len(bias.dims) - 1, [width, width])
    return halves.inputs[0] if cut and added.inputs == halves.outputs else None


def _bias_apart(b: Builder, node: Node, bias: Value) -> Value | None:
    """The B [..., 4*hidden] of IR's GRU with `linear_before_reset` as ONNX's B [..., 6*hidden].
    None if all are zeros."""
    hidden = node.attributes["hidden_size"]
    values = known_of(bias).array
    if values is not None:
        if not values.any():
            return None
        ends = [2 * hidden, 3 * hidden]
        both, own_w, own_r = np.split(values, ends, -1)
        return b.constant(np.concatenate([both, own_w, np.zeros_like(both), own_r], -1))
    of_w, of_r = b.split(bias, -1, 3 * hidden, hidden)
    shared = b.cut(of_w, -1, 0, 2 * hidden)
    return b.concat(-1, of_w, b.zeros(shared, b.op("Shape", shared)), of_r)
