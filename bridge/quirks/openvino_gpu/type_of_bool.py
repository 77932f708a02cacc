"""Boolean outputs in a model with open sizes. If the GPU plugin knows the shape of such an output,
it compares its type with bytes, and fails."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Value
from bridge.neutral.types import BOOL, is_static
from bridge.passes.context import Context
from bridge.quirks.opaque import is_hidden, opaque, undone
from bridge.quirks.quirk import Quirk, replace_outputs


def of_copies(graph: Graph, context: Context) -> bool:
    """Gives copies of boolean outputs in their place."""
    made = (value for node in graph.nodes for value in node.outputs)
    if all(is_static(value.shape) for value in (*graph.inputs, *made)):
        return False
    return replace_outputs(graph, context, _copy)


def _copy(b: Builder, value: Value) -> Value | None:
    made = value.producer
    if value.element is not BOOL or made is None or made.op == "Constant":
        return None
    return None if is_hidden(value, "memory") else opaque(b, value, "memory")


QUIRK = Quirk(
    releases="2026.4",
    symptom="The first inference fails at a boolean output of known shape, if something before it "
    "has an open size. The plugin knows more shapes than OpenVINO shows.",
    fires="At a boolean output, if the model has open sizes.",
    safe="A value or itself is the value.",
    cost="a LogicalOr of the output",
    run=of_copies,
    undo=undone("memory"),
)
