"""Constant outputs of f64 and u64. The GPU plugin keeps them in 32 bits, and does not convert them
back."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Value
from bridge.neutral.types import F64, U64
from bridge.passes.context import Context
from bridge.quirks.known import is_known
from bridge.quirks.opaque import is_hidden, opaque, undone
from bridge.quirks.quirk import Place, Quirk, replace_outputs


def of_unknown(graph: Graph, context: Context) -> bool:
    """Gives values that the plugin does not know in place of such outputs."""
    place = Place(graph)

    def hidden(b: Builder, value: Value) -> Value | None:
        if value.element not in (F64, U64) or value.producer is None:
            return None
        if is_hidden(value, "content") or not is_known(value, place):
            return None
        return opaque(b, value, "content")

    return replace_outputs(graph, context, hidden)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A constant output of f64 has the bits of f32, and one of u64 the bits of i32.",
    fires="At an output of f64 or u64 that is known when the model is compiled.",
    safe="The only row of a stack is the value.",
    cost="a Gather of the output",
    run=of_unknown,
    undo=undone("content"),
)
