"""CausalConvWithState."""

from __future__ import annotations

from bridge.neutral.inference import first, infers, require
from bridge.neutral.types import ANY, Dim, TensorType
from bridge.operators import Node
from bridge.operators.recurrent.recurrent import dim_of


@infers("CausalConvWithState")
def infer_causal_conv(node: Node) -> list[TensorType]:
    """CausalConvWithState-27: the output is like the input [batch, channels, length], the state
    has kernel - 1 elements."""
    x, weight = first(node), first(node, 1)
    batch, channels = dim_of(node, 0, 0), dim_of(node, 0, 1)
    require(weight.shape is None or len(weight.shape) > 0)
    kernel = None if weight.shape is None else weight.shape[-1]
    past: Dim = kernel - 1 if isinstance(kernel, int) else ANY
    return [x, TensorType(x.element, (batch, channels, past))]
