"""Outputs that depend on sizes alone. The GPU plugin writes them only if sizes change."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Value
from bridge.neutral.types import I64
from bridge.passes.context import Context
from bridge.quirks.quirk import Quirk, replace_outputs

SOURCES = frozenset({"Constant", "Shape"})
"""Operators whose results do not depend on the elements of an input."""


def of_data(graph: Graph, context: Context) -> bool:
    """Adds a 0 to outputs of integers. The 0 is computed from the data whose sizes the output
    gives."""
    known: dict[Value, Value | None] = {}
    for node in graph.nodes:
        inputs = [value for value in node.inputs if value is not None]
        if node.op in SOURCES:
            known.update(dict.fromkeys(node.outputs, inputs[0] if inputs else None))
        elif inputs and not node.bodies and all(value in known for value in inputs):
            sources = [known[value] for value in inputs if known[value] is not None]
            known.update(dict.fromkeys(node.outputs, sources[0] if sources else None))

    def summed(b: Builder, value: Value) -> Value | None:
        data = known.get(value)
        if data is None or value.element is None or not value.element.is_integer:
            return None
        flat = b.reshape(b.cast(data, I64), -1)
        first = b.op("Slice", flat, *(b.constant([n]) for n in (0, 1, 0, 1)))
        nothing = b.op("ReduceMax", b.concat(0, first * 0, b.constant([0])), [0], keepdims=False)
        return value + b.cast(nothing, value.element)

    return replace_outputs(graph, context, summed)


QUIRK = Quirk(
    releases="2026.4",
    symptom="An output that depends on sizes alone is unset memory in a new request, unless sizes "
    "changed.",
    fires="At an output of the model, of integers, that is computed from constants and shapes.",
    safe="Adding 0 changes no integer.",
    cost="a few operators on one element for each such output; they stay on the way back to ONNX",
    run=of_data,
)
