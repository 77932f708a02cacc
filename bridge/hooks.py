"""Registers the functions that the middle needs from the ONNX standard. The neutral graph and the
operators know no format themselves. `bridge.library.api` imports this."""

from collections.abc import Sequence

from bridge.neutral import inference
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.computed import Array
from bridge.neutral.types import Type
from bridge.operators import standard


def _infer(node: Node) -> Sequence[Type]:
    """Output types by the standard's own inference functions."""
    from bridge.onnx_format.inference import infer_node

    return infer_node(node)


def _inline(b: Builder, node: Node, where: str) -> list[Value | None] | None:
    """The standard's function body of a node."""
    from bridge.onnx_format.inference import inline_standard_function

    return inline_standard_function(b, node, where)


def _compute(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    """The outputs of a node for known inputs, by the standard's own evaluator."""
    from bridge.onnx_format.evaluation import compute_node

    return compute_node(node, arrays)


inference.infer_otherwise(_infer)
standard.provide(_inline, _compute)
