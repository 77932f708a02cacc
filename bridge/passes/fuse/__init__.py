"""Patterns of several operators become the one operator of the standard that means the same.

A pattern is `f(b, node, uses)` for the last node of what it looks for. It gives the value that
takes the place of the node's output that is used, having made its nodes with the builder, or None.
Nodes within a pattern go when nobody else uses them. Of two patterns for an operator the larger
comes first.
Names: the node that is made has that of the first node of the pattern, which is what a rule on the
way to IR gives the name of the node it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value, names_of_outputs
from bridge.neutral.rewrite import Pattern, Result
from bridge.passes.context import Context
from bridge.passes.fuse.activations import clip, leaky_relu
from bridge.passes.fuse.attention import masked_attention
from bridge.passes.fuse.axes import axes_of_one
from bridge.passes.fuse.bias import convolution_with_bias, gemm
from bridge.passes.fuse.comparisons import exchanged_again
from bridge.passes.fuse.compressed import compressed_constant
from bridge.passes.fuse.frames import short_time_transform
from bridge.passes.fuse.guards import guarded_division
from bridge.passes.fuse.integers import (
    conv_integer,
    dynamic_quantize_linear,
    in_eight_bits,
    matmul_integer,
)
from bridge.passes.fuse.inverses import (
    copied,
    element_by_element,
    joined_again,
    reshaped_again,
    squeezed_again,
    transposed_again,
)
from bridge.passes.fuse.normalization import instance_normalization, layer_normalization
from bridge.passes.fuse.nothing import (
    limit_kept,
    line_again,
    nothing_added,
    nothing_compared,
    nothing_cut,
    nothing_padded,
    only_row,
    padded_with_nothing,
    shape_kept,
)
from bridge.passes.fuse.places import compress, place_of_one
from bridge.passes.fuse.provenance import Rewrite, recorded_node
from bridge.passes.fuse.quantization import dequantize_linear, quantize_linear
from bridge.passes.fuse.root_mean_square import rms_normalization
from bridge.passes.fuse.rotary import rotary_embedding
from bridge.passes.fuse.shifts import bit_shift
from bridge.passes.fuse.stacks import guarded_loop, whole_stack
from bridge.passes.fuse.uses import Uses
from bridge.passes.fuse.weights import matmul_n_bits, upright_weights
from bridge.passes.fuse.windows import lean_window

Fusion = Callable[[Builder, Node, Uses], Value | None]
Choice = Callable[[Node], Sequence[Fusion]]

WITHIN: Mapping[str, tuple[Fusion, ...]] = {
    "Add": (nothing_added,),
    "Cast": (compressed_constant,),
    "Broadcast": (shape_kept,),
    "Expand": (shape_kept,),
    "Gather": (only_row,),
    "Less": (exchanged_again,),
    "LessOrEqual": (exchanged_again,),
    "Max": (nothing_compared,),
    "Mul": (compressed_constant,),
    "Or": (nothing_compared,),
    "Reshape": (shape_kept, padded_with_nothing, compressed_constant),
    "Slice": (nothing_cut,),
    "Sub": (nothing_added,),
    "ir::Pad": (nothing_padded,),
}
"""Those that larger patterns contain: they come first."""

OF_IR: Mapping[str, tuple[Fusion, ...]] = {
    "Add": (instance_normalization, layer_normalization),
    "Cast": (quantize_linear, dynamic_quantize_linear, conv_integer, in_eight_bits),
    "Gather": (compress,),
    "If": (guarded_loop,),
    "Mul": (instance_normalization, layer_normalization, dequantize_linear, rms_normalization),
    "MatMul": (matmul_n_bits, upright_weights, matmul_integer),
    "MaxPool": (lean_window,),
    "Min": (clip,),
    "PRelu": (leaky_relu,),
    "Range": (limit_kept,),
    "Reshape": (line_again,),
    "RDFT": (short_time_transform,),
    "Slice": (whole_stack,),
    "Squeeze": (place_of_one, axes_of_one),
    "MVN": (instance_normalization, layer_normalization),
    "Where": (bit_shift, masked_attention, guarded_division),
}
"""Patterns with operators of IR, by the last operator."""

OF_ONNX: Mapping[str, tuple[Fusion, ...]] = {
    "Add": (convolution_with_bias, gemm),
    "Concat": (rotary_embedding, joined_again),
    "Identity": (copied,),
    "Reshape": (reshaped_again,),
    "Squeeze": (squeezed_again, element_by_element),
    "Transpose": (transposed_again,),
}
"""Patterns of operators that ONNX has, by the last operator."""


def fuse_ir(model: Model, context: Context, further: Rewrite) -> bool:
    """Recomposes, in place, what rules would expand otherwise, in all nested graphs too. `further`
    is what may have been done to a graph that was expanded for IR."""
    of_record = (partial(recorded_node, further),)
    record = _pattern(
        lambda node: of_record if node.extras and "provenance" in node.extras else (), context
    )
    # WITHIN takes apart what some nodes became, and of others restores it.
    patterns = (record, _by_op(WITHIN, context), record, _by_op(OF_IR, context))
    return any([Uses(model.graph).run(pattern) for pattern in patterns])


def fuse_onnx(model: Model, context: Context) -> bool:
    """Recomposes, in place, what is expanded, in all nested graphs too."""
    model.graph.output_names = names_of_outputs(model.graph)
    return Uses(model.graph).run(_by_op(OF_ONNX, context))


def _by_op(table: Mapping[str, tuple[Fusion, ...]], context: Context) -> Pattern:
    return _pattern(lambda node: table[node.op], context, frozenset(table))


def _pattern(choice: Choice, context: Context, ops: frozenset[str] | None = None) -> Pattern:
    """The first of several patterns that fits. It goes from the end, so that a pattern is met
    before the smaller ones within it."""

    def fused(b: Builder, node: Node, uses: Uses) -> Result:
        for fusion in choice(node):
            b.name = node.name
            made = fusion(b, node, uses)
            if made is not None:
                output = uses.output(node)
                return [made if value is output else None for value in node.outputs]
            b.nodes.clear()
        return None

    return Pattern(fused, ops, context.target, backwards=True)
