"""Keeps the states of a Loop apart in OpenVINO's memory.

OpenVINO's CPU plugin (2026.4) computes elementwise operators in the memory of their input where it
can, that of a body's Parameter too. A state that is made in this way from a slice or from another
state lies where the next slice or state is then written, before it is read: `h = x + h` over the
slices x gives wrong numbers, and so does `a, b = b, a + b`. A maximum with itself, which is not
computed in place, gives such an input a memory of its own.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Body, Carried, Graph, Sliced, Value
from bridge.neutral.types import BOOL, is_static, size_of

OWN_MEMORY = {
    "ArgMax", "ArgMin", "Constant", "Conv", "ConvTranspose", "Gather", "GatherElements", "GatherND",
    "If", "Loop", "MatMul", "NonZero", "Range", "Shape", "Size", "TopK",
}  # fmt: skip
"""Operators that never write where their inputs are."""


def separate_states(graph: Graph, target: Target) -> None:
    """Copies, in place, every input of a Loop's body in whose memory another state may lie."""
    for node in graph.nodes:
        for body in node.bodies:
            separate_states(body.graph, target)
            if node.op == "Loop":
                _separate(body, Builder([], node.name, target))


def _separate(body: Body, b: Builder) -> None:
    graph = body.graph
    places = _places(graph)
    copied: dict[Value, Value] = {}
    for value, port in zip(graph.inputs, body.inputs, strict=True):
        if not isinstance(port, Carried):
            continue
        for source in places.get(graph.outputs[port.output], set()) - {value}:
            if source not in copied and _moves(body, source):
                copied[source] = b.op("Or" if source.element is BOOL else "Max", source, source)
    if not copied:
        return
    for node in graph.nodes:
        node.inputs = [None if v is None else copied.get(v, v) for v in node.inputs]
    graph.outputs = [copied.get(v, v) for v in graph.outputs]
    graph.nodes[:0] = b.nodes


def _moves(body: Body, value: Value) -> bool:
    """Whether an input of the body is another one in each iteration."""
    port = body.inputs[body.graph.inputs.index(value)]
    return isinstance(port, Carried | Sliced) and value.element is not None


def _places(graph: Graph) -> dict[Value, set[Value]]:
    """In the memory of which of the graph's inputs each value may lie."""
    places = {value: {value} for value in graph.inputs}
    for node in graph.nodes:
        if node.op in OWN_MEMORY:
            continue
        for output in node.outputs:
            places[output] = {
                place
                for value in node.inputs
                if value is not None and _fits(value, output)
                for place in places.get(value, ())
            }
    return places


def _fits(value: Value, output: Value) -> bool:
    """Whether a value's memory is right for an output."""
    if value.element is not output.element:
        return False
    if is_static(value.shape) and is_static(output.shape):
        return size_of(value.shape) == size_of(output.shape)
    return True
