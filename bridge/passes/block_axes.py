"""Scales of blocks along another axis than a DequantizeLinear says.

NNCF writes axis 0 for weights that it compresses along the last axis. If the scales fit along one
axis alone, that one is meant; no engine takes the model as it is.
"""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.operators.quantization.quantize import axes_of_blocks
from bridge.passes.context import Context


def fit_block_axes(model: Model, context: Context) -> bool:
    """Gives such nodes, in place, the axis that fits, and notes each."""

    def fitted(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        x, block, axis = node.operand(0), node.attributes["block_size"], node.attributes["axis"]
        fits = axes_of_blocks(x.shape, node.operand(1).shape, block) if block else []
        if len(fits) != 1 or axis % len(x.dims) == fits[0]:
            return None
        context.report.notes.append(
            f"{rewriter.path(node)}: says axis {axis}, and its scales fit axis {fits[0]} alone, "
            "which it got"
        )
        attributes = {**node.attributes, "axis": fits[0]}
        return b.node(node.op, node.inputs, 1, attributes, name=node.name).outputs

    return Rewriter(model.graph).run(Pattern(fitted, frozenset({"DequantizeLinear"})))
