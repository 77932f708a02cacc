"""Boolean outputs in a model with open sizes. If the GPU plugin knows the shape of such an output,
it compares its type with bytes, and fails."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph
from bridge.neutral.types import BOOL, is_static
from bridge.passes.context import Context
from bridge.quirks.opaque import is_hidden, opaque, undone
from bridge.quirks.quirk import Quirk


def of_copies(graph: Graph, context: Context) -> bool:
    """Gives copies of boolean outputs in their place."""
    made = (value for node in graph.nodes for value in node.outputs)
    if all(is_static(value.shape) for value in (*graph.inputs, *made)):
        return False
    changed = False
    for index, value in enumerate(graph.outputs):
        made_by = value.producer
        if value.element is not BOOL or made_by is None or made_by.op == "Constant":
            continue
        if is_hidden(value, "memory"):
            continue
        with Builder(graph.nodes, value.name, context.target) as b:
            copy = opaque(b, value, "memory")
        copy.names, value.names = list(value.names), []
        copy.declared = value.declared
        graph.outputs[index] = copy
        changed = True
    return changed


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
