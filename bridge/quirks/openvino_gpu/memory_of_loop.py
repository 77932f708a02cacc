"""Values that enter and leave a Loop.

The GPU plugin reuses their memory too early, or reads it at the place of an earlier run.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, Condition, InputPort
from bridge.neutral.types import BOOL
from bridge.operators import Result
from bridge.quirks.opaque import hides, is_hidden, opaque, undone
from bridge.quirks.quirk import Place, Quirk, is_computed_in, rewriting


def copied(b: Builder, node: Node, place: Place) -> Result:
    """The Loop with a copy of each input, of each state and of each output of the body."""
    inputs = [_copy(b, value) if at > 1 else value for at, value in enumerate(node.inputs)]
    body = clone_body(node.body)
    head = Builder([], node.name, b.target)
    with head:
        body.graph.inputs = [_read(head, body, *entry) for entry in body.entries()]
    body.graph.prepend(head.nodes)
    inner = Builder(body.graph.nodes, node.name, b.target)
    with inner:
        ends = [
            value if isinstance(port, Condition) else _copy(inner, value)
            for value, port in body.exits()
        ]
    if inputs == node.inputs and ends == body.graph.outputs and not head.nodes:
        return None
    body.graph.outputs = [value for value in ends if value is not None]
    made = b.node(
        "Loop", inputs, len(node.outputs), dict(node.attributes), (body,), node.name, node.extras
    )
    for new, old in zip(made.outputs, node.outputs, strict=True):
        new.type = new.declared = old.type
    return made.outputs


def _read(head: Builder, body: Body, value: Value, port: InputPort) -> Value:
    """The input of a body that stands for a value; a state is only read for its copy."""
    if not isinstance(port, Carried) or value.element is None or not is_computed_in(value.element):
        return value
    readers = [node for node in body.graph.nodes if value in node.inputs]
    if value not in body.graph.outputs and all(hides(reader, "memory") for reader in readers):
        return value
    state = Value(value.type, value.names)
    value.names = []
    head.node("Or" if value.element is BOOL else "Max", [state, state], [value])
    return state


def _copy(b: Builder, value: Value | None) -> Value | None:
    if value is None or value.constant is not None or is_hidden(value, "memory"):
        return value
    if value.element is None or not is_computed_in(value.element):
        return value
    return opaque(b, value, "memory")


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop reads an input at its place in an earlier run. A state that becomes another "
    "state is overwritten before it is read. A state that is also stacked keeps its last value. A "
    "state that has one reader keeps its first size.",
    fires="At each value that enters a Loop, except constants, at each state and at each output of "
    "its body.",
    safe="A copy has the same elements.",
    cost="a Maximum, or a LogicalOr, for each of these values",
    run=rewriting("Loop", by=copied),
    undo=undone("memory"),
)
