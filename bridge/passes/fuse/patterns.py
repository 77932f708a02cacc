"""All patterns, by the last operator, in the order in which they are tried."""

from collections.abc import Mapping

from bridge.neutral.graph import Model, Node, names_of_outputs
from bridge.passes.context import Context
from bridge.passes.fuse import Fusion, first_of, fuse
from bridge.passes.fuse.attention import heads_that_share_keys, masked_attention
from bridge.passes.fuse.bias import convolution_with_bias, gemm
from bridge.passes.fuse.cached_attention import attention_with_cache
from bridge.passes.fuse.compressed import compressed_constant
from bridge.passes.fuse.float_weights import float_weights
from bridge.passes.fuse.integers import (
    conv_integer,
    dynamic_quantize_linear,
    matmul_integer,
)
from bridge.passes.fuse.inverses import (
    copied,
    joined_again,
    reshaped_again,
    reshaped_integers,
    squeezed_again,
    transposed_again,
)
from bridge.passes.fuse.normalization import (
    instance_normalization,
    layer_normalization,
    rms_normalization,
)
from bridge.passes.fuse.quantization import dequantize_linear, quantize_linear
from bridge.passes.fuse.rotary import rotary_embedding
from bridge.passes.fuse.spelled_out import (
    axes_of_one,
    clip,
    compress,
    converted_first,
    guarded_division,
    leaky_relu,
    lean_window,
    place_of_one,
)
from bridge.passes.fuse.weights import matmul_n_bits
from bridge.passes.uses import Uses
from bridge.passes.wayback.provenance import recorded_node

WITHIN: Mapping[str, tuple[Fusion, ...]] = {
    "Cast": (compressed_constant,),
    "Mul": (compressed_constant,),
    "Reshape": (compressed_constant,),
}
"""Patterns that larger patterns contain: they come first."""

OF_IR: Mapping[str, tuple[Fusion, ...]] = {
    "Add": (instance_normalization, layer_normalization),
    "Cast": (quantize_linear, dynamic_quantize_linear, conv_integer),
    "Gather": (compress,),
    "Mul": (instance_normalization, layer_normalization, dequantize_linear, rms_normalization),
    "MatMul": (matmul_n_bits, matmul_integer),
    "MaxPool": (lean_window,),
    "Min": (clip,),
    "PRelu": (leaky_relu,),
    "Squeeze": (place_of_one, axes_of_one),
    "MVN": (instance_normalization, layer_normalization),
    "Where": (masked_attention, guarded_division),
}
"""Patterns with operators of IR, by the last operator."""

LAST: Mapping[str, tuple[Fusion, ...]] = {"DequantizeLinear": (float_weights,)}
"""Patterns that need the results of all others."""

OF_ONNX: Mapping[str, tuple[Fusion, ...]] = {
    "Add": (convolution_with_bias, gemm),
    "Cast": (converted_first,),
    "Concat": (rotary_embedding, joined_again),
    "Identity": (copied,),
    "Reshape": (heads_that_share_keys, reshaped_again, reshaped_integers),
    "Squeeze": (squeezed_again,),
    "Transpose": (transposed_again,),
}
"""Patterns of operators that ONNX has, by the last operator."""


OF_STATES: Mapping[str, tuple[Fusion, ...]] = {"MatMul": (attention_with_cache,)}
"""Patterns that OpenVINO runs as one operator beside a variable, by the last operator."""


def fuse_states(model: Model, context: Context) -> bool:
    """Fuses, in place, nodes that read variables of a model for IR."""
    return fuse(model.graph, OF_STATES, context)


def fuse_ir(model: Model, context: Context) -> bool:
    """Fuses, in place, nodes that rules would expand otherwise, in all nested graphs too."""
    changed = _restore(model, context)
    changed |= fuse(model.graph, WITHIN, context)
    if changed:
        _restore(model, context)
    return any([changed, *(fuse(model.graph, table, context) for table in (OF_IR, LAST))])


def fuse_onnx(model: Model, context: Context) -> bool:
    """Fuses expanded operators, in place, in all nested graphs too."""
    model.graph.output_names = names_of_outputs(model.graph)
    return fuse(model.graph, OF_ONNX, context)


def _restore(model: Model, context: Context) -> bool:
    """Restores the recorded ONNX nodes."""
    recorded = any(map(_by_record, model.graph.walk()))
    return recorded and Uses(model.graph).run(first_of(_by_record, context))


def _by_record(node: Node) -> tuple[Fusion, ...]:
    return (recorded_node,) if node.extras and "provenance" in node.extras else ()
