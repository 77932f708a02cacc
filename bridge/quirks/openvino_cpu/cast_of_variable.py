"""A variable that is converted and then given as an output of the model."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.opaque import opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def in_memory_of_its_own(b: Builder, node: Node, place: Place) -> Result:
    """The same, of a copy of the variable."""
    read = node.inputs[0]
    made = read.producer if read is not None else None
    outputs = {value.behind("Identity") for value in place.graph.outputs}
    if read is None or made is None or made.op != "ReadValue" or node.outputs[0] not in outputs:
        return None
    if read.element is node.outputs[0].element:
        return None
    return b.cast(opaque(b, read, "memory"), node.outputs[0].element)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A variable whose conversion is an output does not compile: the plugin gives the "
    "variable itself the type of the output.",
    fires="At a Cast of a ReadValue to another type that is an output of the model.",
    safe="The greatest of a value and itself is the value.",
    cost="a copy of the variable.",
    run=rewriting("Cast", by=in_memory_of_its_own),
    undo=undone("memory"),
)
