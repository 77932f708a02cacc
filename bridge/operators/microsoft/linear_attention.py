"""Attention with a recurrent state, and the operators around it, of onnxruntime's own domain,
com.microsoft (onnxruntime's ContribOperators). Attributes have their values from the file."""

from typing import Any

from bridge.neutral.types import F32
from bridge.operators import (
    Builder,
    Node,
    Refused,
    Result,
    Value,
    attributes_beside,
    legalizes,
    ranks,
    required,
)


@legalizes("com.microsoft::LinearAttention", target="ir")
def linear_attention(b: Builder, node: Node) -> Result:
    """`com.microsoft::LinearAttention` (1): the standard's operator, unless it keeps several
    states."""
    rest = attributes_beside(node, "state_window")
    return b.ops("LinearAttention", len(node.outputs), *node.inputs, **rest)


@legalizes("com.microsoft::LinearAttentionGate", target="ir")
def linear_attention_gate(b: Builder, node: Node) -> Result:
    """`com.microsoft::LinearAttentionGate` (1): the decay in f32, and the update rate."""
    a, bias, scale = required(node, 0, 1, 2)
    decay = b.cast(b.op("Softplus", b.cast(a, F32) + bias) * scale, a.element)
    rate = node.input(3)
    return [decay, None if rate is None else b.op("Sigmoid", rate)][: len(node.outputs)]


@legalizes("com.microsoft::GatedDeltaNet", target="ir")
def gated_delta_net(b: Builder, node: Node) -> Result:
    """`com.microsoft::GatedDeltaNet` (1): LinearAttention with an axis of heads. The heads of
    queries and keys are repeated for those of values, and states have the values first."""
    attributes: dict[str, Any] = node.attributes
    query, key, value = required(node, 0, 1, 2)
    decay, rate, state = (node.input(i) for i in range(4, 7))
    (rank, *_) = ranks(node, 0, 2)
    few, many = query.dims[-2], value.dims[-2]
    if not isinstance(few, int) or not isinstance(many, int):
        raise Refused("the numbers of its heads are not known; declare the graph's input shapes")
    if rank == 3 and state is None:
        raise Refused("the number of its sequences is not known; give `input_shapes`")
    batch = b.sizes(query, 0) if state is None else b.sizes(state, 0)

    def tokens(x: Value, count: int = many) -> Value:
        """[batch, length, heads * size], with each of the heads as often as values need it."""
        if count < many:
            width = b.sizes(x, -1)
            x = b.expand(b.unsqueeze(b.reshape(x, b.shape(-1, count, width)), 2), many // count, 1)
        return b.reshape(x, b.shape(batch, -1, many * b.sizes(x, -1)))

    if attributes.get("qk_l2_norm", 0):
        query, key = (_unit(b, x) for x in (query, key))
    if decay is not None:
        width = b.sizes(decay, -1) if decay.rank == rank else 1
        decay = _decay(b, node, b.cast(decay, F32))
        decay = b.reshape(decay, b.shape(batch, -1, many * width))
    activation = attributes.get("beta_activation", "none")
    if rate is not None:
        rate = b.reshape(b.cast(rate, F32), b.shape(batch, -1, many))
        rate = b.op("Sigmoid", rate) if activation == "sigmoid" else rate
    parts = (b.cast(x, F32) for x in (tokens(query, few), tokens(key, few), tokens(value)))
    before = None if state is None else b.transpose(state, 0, 1, 3, 2)
    y, after = b.ops(
        "LinearAttention", 2, *parts, before, decay, rate, q_num_heads=many, kv_num_heads=many,
        scale=attributes.get("scale", 0.0), update_rule=attributes.get("update_rule", _RULE),
    )  # fmt: skip
    y = b.reshape(b.cast(y, value.element), b.op("Shape", value))
    return [y, b.transpose(after, 0, 1, 3, 2)][: len(node.outputs)]


_RULE = "gated_delta"


def _unit(b: Builder, x: Value) -> Value:
    """Heads of length 1, in f32."""
    wide = b.cast(x, F32)
    squares = b.op("ReduceSumSquare", wide, [-1], keepdims=True)
    return wide / b.op("Sqrt", squares + 1e-12)


def _decay(b: Builder, node: Node, x: Value) -> Value:
    """The decay, of its projection if the node has an activation for it."""
    kind = node.attributes.get("gate_activation", "none")
    lower: float = node.attributes.get("gate_lower_bound", -5.0)
    if kind == "none":
        return x
    log, bias = required(node, 7, 8)
    x += bias if log.dims == bias.dims else b.reshape(bias, b.sizes(log, 0), -1)
    rate = b.op("Exp", log)
    if x.rank is not None and node.operand(4).rank == node.operand(0).rank:
        rate = b.unsqueeze(rate, 1)
    if kind in ("softplus", "qwen"):
        return b.op("Softplus", x) * -rate
    if kind not in ("sigmoid", "kda"):
        raise Refused(f"its gate_activation {kind} is not supported")
    return b.op("Sigmoid", x * rate) * lower


@legalizes("com.microsoft::CausalConvWithState", target="ir")
def causal_conv(b: Builder, node: Node) -> Result:
    """`com.microsoft::CausalConvWithState` (1): the standard's operator along one axis. Channels
    may be last and on several axes. The state of a dilated convolution has the gaps, too."""
    attributes: dict[str, Any] = node.attributes
    x, weight = required(node, 0, 1)
    bias, state = node.input(2), node.input(3)
    last = attributes.get("channels_last", 0)
    if last:
        ranks(node, 0)
        sizes = [b.sizes(x, axis) for axis in range(2, len(x.dims))]
        x = b.transpose(b.reshape(x, 0, 0, -1), 0, 2, 1)
        state = state and b.transpose(b.reshape(state, 0, 0, -1), 0, 2, 1)
    activation = attributes.get("activation", "none")
    if attributes.get("dilation", 1) == 1:
        inputs = x, weight, bias, state
        y, state = b.ops("CausalConvWithState", 2, *inputs, activation=activation)
    else:
        y, state = _dilated(b, attributes["dilation"], x, weight, bias, state)
        y = y if activation == "none" else b.op("Swish", y)
    results = [y, state]
    if last:
        rows = [b.transpose(z, 0, 2, 1) for z in results]
        results = [b.reshape(z, b.shape(b.sizes(z, 0), b.sizes(z, 1), *sizes)) for z in rows]
    return results[: len(node.outputs)]


def _dilated(
    b: Builder, step: int, x: Value, weight: Value, bias: Value | None, state: Value | None
) -> tuple[Value, Value]:
    """The convolution of [batch, channels, length] behind its state, and the next state."""
    channels, width = weight.dims[0], weight.dims[2]
    if not isinstance(channels, int) or not isinstance(width, int):
        raise Refused("the shape of its weight is not known; give `input_shapes`")
    held = (width - 1) * step
    if state is None:
        state = b.zeros(x, b.sizes(x, 0), channels, held)
    whole = b.concat(2, state, x)
    y = b.op("Conv", whole, weight, bias, group=channels, dilations=(step,))
    return y, b.cut(whole, 2, b.sizes(x, 2), b.sizes(whole, 2))
