"""Each value that enters or leaves the body has an element type that oneDNN copies.

The CPU plugin has oneDNN copy these values, which lacks some types.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.ports import Stacked, Yield, outer_input
from bridge.neutral.types import F4E2M1, F8E8M0, F32, U2, U8, Element, TensorType
from bridge.operators.control.loop_builder import Finish
from bridge.quirks.safe_loop import Clause, Draft

WIDER = {F4E2M1: F32, F8E8M0: F32, U2: U8}
"""For each type that oneDNN lacks, a type that holds all its numbers."""


def lacks(draft: Draft) -> list[Value]:
    """The values of such types that enter or leave."""
    graph = draft.body.graph
    return [value for value in (*graph.inputs, *graph.outputs) if value.element in WIDER]


def give(draft: Draft, found: list[Value]) -> None:
    """Such values enter and leave the body in a wider type."""
    b, loop, body = draft.b, draft.loop, draft.body
    exits = [i for i, value in enumerate(body.graph.outputs) if value.element in WIDER]
    for index in {outer_input(port) for value, port in body.entries() if value in found}:
        outer = None if index is None else loop.inputs[index]
        if index is not None and outer is not None and outer.element in WIDER:
            loop.inputs[index] = b.cast(outer, WIDER[outer.element])
    inside = Builder([], draft.node.name, b.target)
    narrow: dict[Value, Value] = {}
    for place, value in enumerate(body.graph.inputs):
        if value.element in WIDER:
            entry = Value(TensorType(WIDER[value.element], value.shape), list(value.names))
            body.graph.inputs[place] = entry
            narrow[value] = inside.cast(entry, value.element)
    draft.enter_as(narrow, inside.nodes)
    inner = loop.inside(b)
    for index in exits:
        value, exit = body.graph.outputs[index], body.outputs[index]
        assert value.element is not None
        body.graph.outputs[index] = inner.cast(value, WIDER[value.element])
        if isinstance(exit, Yield | Stacked) and exit.output is not None:
            loop.after(exit.output, _back(value.element))


def _back(element: Element) -> Finish:
    return lambda b, value: b.cast(value, element)


QUIRK = Clause(
    holds="Each value that enters or leaves the body has an element type that oneDNN copies.",
    lacks=lacks,
    give=give,
    retypes=True,
    releases="2026.4",
    symptom="A value of type u2, f4e2m1 or f8e8m0 that enters or leaves a Loop is wrong, or the "
    "Loop does not run.",
    fires="At a Loop with a value of type u2, f4e2m1 or f8e8m0 that enters or leaves its body.",
    safe="The wider type has all numbers of the narrow one. So the two conversions change none.",
    cost="a Convert at each end",
)
