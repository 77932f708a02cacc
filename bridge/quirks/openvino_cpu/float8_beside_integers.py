"""Arithmetic behind floats of 8 bits, in a model that also quantises to integers.

OpenVINO treats this arithmetic as the dequantisation of integers. The CPU plugin then has to
compute in 8-bit floats, which it does not support.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.quirks.opaque import undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting


def beside_memory(b: Builder, node: Node, place: Place) -> Result:
    """The arithmetic on a maximum of the converted value with itself."""
    return with_hidden(b, node, "memory", [_is_of_float8(value) for value in node.inputs])


def _is_of_float8(value: Value | None) -> bool:
    """Whether a value, perhaps reshaped, is converted from a computed 8-bit float. Weights are not
    computed."""
    while value is not None and value.producer is not None:
        if value.producer.op not in ("Cast", "ir::Convert", "Reshape"):
            return False
        value = value.producer.inputs[0]
        element = None if value is None else value.element
        if value is not None and element is not None and element.bits == 8 and element.is_float:
            return value.constant is None
    return False


def _run(graph: Graph, context: Context) -> bool | None:
    if not any(node.op == "FakeQuantize" for node in graph.walk()):
        return False
    return rewriting("Add", "Div", "Mul", "Sub", by=beside_memory)(graph, context)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A model does not compile if it quantises to integers, and scales floats of 8 bits "
    "elsewhere.",
    fires="At arithmetic on a computed float of 8 bits that is converted, in a model with a "
    "FakeQuantize.",
    safe="The maximum of a value with itself is the value.",
    cost="a Max of the converted value",
    run=_run,
    undo=undone("memory"),
)
