"""Values without elements that enter or leave a Loop's body: old releases of the CPU plugin divide
by the size of the first axis where they copy one of shape [0], [0,1] and so on, which ends the
process. They copy [1,0] well, so the value goes in and out with an axis of size 1 before its
own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Invariant, Sliced, Stacked, Yield
from bridge.neutral.types import I8, I32, I64, TensorType, high, low
from bridge.operators import Result
from bridge.operators.control.loop_builder import Finish, LoopBuilder
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

COPIED_WELL = {I8, I32, I64}
"""Element types that are copied in another way, which does not divide."""


def with_a_first_axis(b: Builder, node: Node, place: Place) -> Result:
    """The values that may be so, in a Loop that takes and gives them with one more axis."""
    loop_builder = LoopBuilder.of(node)
    exits = _exits(loop_builder)
    inside = Builder([], node.name, b.target)
    entries = {
        value: _enter(b, inside, loop_builder, index)
        for index, value in _entries(loop_builder, exits)
    }
    if not entries and not exits:
        return None
    graph = loop_builder.body.graph
    for one in graph.nodes:
        one.inputs = [None if v is None else entries.get(v, v) for v in one.inputs]
    graph.outputs = [entries.get(v, v) for v in graph.outputs]
    graph.prepend(inside.nodes)
    for index in exits:
        _leave(b, loop_builder, index)
    loop_builder.drop_unused_inputs()
    return loop_builder.build(b)


def _exits(loop_builder: LoopBuilder) -> list[int]:
    """The outputs of the body that get an axis: those that may be so, and those whose state may."""
    body = loop_builder.body
    found = {i for i, value in enumerate(body.graph.outputs) if _may_end(value)}
    for value, port in body.entries():
        if isinstance(port, Carried) and (_may_end(value) or _may_end(loop_builder.initial(port))):
            found.add(port.output)
    return sorted(found)


def _entries(loop_builder: LoopBuilder, exits: list[int]) -> Iterator[tuple[int, Value]]:
    """The inputs of the body that get an axis, with their places."""
    for index, (value, port) in enumerate(loop_builder.body.entries()):
        if isinstance(port, Carried):
            wanted = port.output in exits
        else:
            wanted = isinstance(port, Invariant | Sliced) and _may_end(value)
        if wanted:
            yield index, value


def _may_end(value: Value | None) -> bool:
    """Whether a value may be of a shape that ends the process: no element along the first axis, and
    one along each other."""
    if value is None or not value.rank or value.element in COPIED_WELL:
        return False
    first, *others = value.dims
    return low(first) == 0 and all(low(dim) <= 1 and high(dim) != 0 for dim in others)


def _enter(b: Builder, inside: Builder, loop_builder: LoopBuilder, index: int) -> Value:
    """Has an input of the body come with one more axis; what it is inside."""
    body = loop_builder.body
    value, port = body.graph.inputs[index], body.inputs[index]
    assert isinstance(port, Carried | Invariant | Sliced) and port.input is not None
    outer = loop_builder.inputs[port.input]
    assert outer is not None
    port = replace(port, input=loop_builder.outer(b.unsqueeze(outer, 0)))
    body.inputs[index] = replace(port, axis=port.axis + 1) if isinstance(port, Sliced) else port
    entry = Value(TensorType(value.element, (1, *value.dims)), list(value.names))
    body.graph.inputs[index] = entry
    return _of_type(inside.squeeze(entry, 0), value)


def _leave(b: Builder, loop_builder: LoopBuilder, index: int) -> None:
    """Has an output of the body leave with one more axis, which goes behind the Loop."""
    body = loop_builder.body
    exit = body.outputs[index]
    body.graph.outputs[index] = loop_builder.inside(b).unsqueeze(body.graph.outputs[index], 0)
    if isinstance(exit, Stacked):
        body.outputs[index] = replace(exit, axis=exit.axis + 1)
    if isinstance(exit, Yield | Stacked) and exit.output is not None:
        loop_builder.after(exit.output, _without_axis(loop_builder.node.outputs[exit.output]))


def _without_axis(output: Value) -> Finish:
    return lambda b, value: _of_type(b.squeeze(value, 0), output)


def _of_type(value: Value, known: Value) -> Value:
    value.type = value.declared = known.type
    return value


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2024.0 to 2025.2",
    symptom="A value of shape [0], or [0,1], that enters or leaves a Loop's body ends the process.",
    cost="Unsqueeze and Squeeze, which copy nothing, for each value of open size that goes into a "
    "Loop or comes out of it. Only with --quirks old.",
    run=rewriting("Loop", by=with_a_first_axis),
)
