"""Values of element types that oneDNN lacks, which the CPU plugin has copy all that enters a Loop's
body and all that leaves it."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Stacked, Yield, outer_input
from bridge.neutral.types import F4E2M1, F8E8M0, F32, U2, U8, Element, TensorType
from bridge.operators import Result
from bridge.operators.control.loop_builder import Finish, LoopBuilder
from bridge.quirks.quirk import Place, Quirk, rewriting

WIDER = {F4E2M1: F32, F8E8M0: F32, U2: U8}
"""Types that hold all numbers of those that oneDNN lacks."""


def wider(b: Builder, node: Node, place: Place) -> Result:
    """They enter and leave the body in a wider type."""
    loop_builder = LoopBuilder.of(node)
    body = loop_builder.body
    entries = {value for value in body.graph.inputs if value.element in WIDER}
    exits = [i for i, value in enumerate(body.graph.outputs) if value.element in WIDER]
    if not entries and not exits:
        return None
    for index in {outer_input(port) for value, port in body.entries() if value in entries}:
        outer = None if index is None else loop_builder.inputs[index]
        if index is not None and outer is not None and outer.element in WIDER:
            loop_builder.inputs[index] = b.cast(outer, WIDER[outer.element])
    narrow = _narrowed(body, entries, Builder([], node.name, b.target))
    body.graph.outputs = [narrow.get(value, value) for value in body.graph.outputs]
    inner = loop_builder.inside(b)
    for index in exits:
        value, exit = body.graph.outputs[index], body.outputs[index]
        assert value.element is not None
        body.graph.outputs[index] = inner.cast(value, WIDER[value.element])
        if isinstance(exit, Yield | Stacked) and exit.output is not None:
            loop_builder.after(exit.output, _back(value.element))
    return loop_builder.build(b)


def _narrowed(body: Body, entries: set[Value], b: Builder) -> dict[Value, Value]:
    """The inputs of the body made wider; by what they were, what they are inside."""
    graph = body.graph
    narrow: dict[Value, Value] = {}
    for place, value in enumerate(graph.inputs):
        if value in entries and value.element is not None:
            entry = Value(TensorType(WIDER[value.element], value.shape), list(value.names))
            graph.inputs[place] = entry
            narrow[value] = b.cast(entry, value.element)
    for node in graph.nodes:
        node.inputs = [None if v is None else narrow.get(v, v) for v in node.inputs]
    graph.prepend(b.nodes)
    return narrow


def _back(element: Element) -> Finish:
    return lambda b, value: b.cast(value, element)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A value of type u2, f4e2m1 or f8e8m0 that enters or leaves a Loop is wrong, or the "
    "Loop does not run.",
    fires="At a Loop with a value of type u2, f4e2m1 or f8e8m0 that enters or leaves its body.",
    safe="The wider type has all numbers of the narrow one, so that the way there and back "
    "changes none.",
    cost="a Convert at each end",
    run=rewriting("Loop", by=wider),
)
