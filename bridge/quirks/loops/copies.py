"""Loops with values that an engine does not copy into the body, or out of it."""

from dataclasses import replace
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.ports import Carried, Invariant, Sliced, Stacked, Yield
from bridge.neutral.types import F4E2M1, F8E8M0, F32, I8, I32, I64, U2, U8, high, low
from bridge.quirks.loops.clause import Draft, clause

WIDER = {F4E2M1: F32, F8E8M0: F32, U2: U8}
"""For each type that oneDNN lacks, a type that holds all its numbers."""


# The CPU plugin has oneDNN copy these values, which lacks some types.
@clause(
    "Each value that enters or leaves the body has an element type that oneDNN copies.",
    retypes=True,
    symptom="A value of type u2, f4e2m1 or f8e8m0 that enters or leaves a Loop is wrong, or the "
    "Loop does not run.",
    cost="a Convert at each end",
)
def copied_types(draft: Draft) -> list[Value]:
    """The wider type has all numbers of the narrow one. So the two conversions change none."""
    graph = draft.body.graph
    return [value for value in (*graph.inputs, *graph.outputs) if value.element in WIDER]


@copied_types.gives
def _(draft: Draft, narrow: list[Value]) -> None:
    """Such values enter and leave the body in a wider type."""
    b, loop, body = draft.b, draft.loop, draft.body
    inside = Builder([], draft.node.name, b.target)
    read: dict[Value, Value] = {}
    wide: dict[int, int] = {}
    for index, value in enumerate(body.graph.inputs):
        port = body.inputs[index]
        if value not in narrow or not isinstance(port, Carried | Invariant | Sliced):
            continue
        outer = None if port.input is None else loop.inputs[port.input]
        assert outer is not None and port.input is not None
        if port.input not in wide:
            wide[port.input] = loop.outer(_widened(b, outer))
        body.inputs[index] = replace(port, input=wide[port.input])
        entry = Value(_widened(Builder([]), value).type, list(value.names))
        body.graph.inputs[index] = entry
        read[value] = _narrowed(value, inside, entry)
    draft.enter_as(read, inside.nodes)
    for index, value in enumerate(body.graph.outputs):
        exit = body.outputs[index]
        if value.element in WIDER:
            body.graph.outputs[index] = _widened(loop.inside(b), value)
            if isinstance(exit, Yield | Stacked) and exit.output is not None:
                loop.after(exit.output, partial(_narrowed, loop.node.outputs[exit.output]))
    loop.drop_unused_inputs()


def _widened(b: Builder, value: Value) -> Value:
    return value if value.element is None else b.cast(value, WIDER[value.element])


def _narrowed(known: Value, b: Builder, wide: Value) -> Value:
    """The value in its own type, with all that is known of it."""
    value = b.cast(wide, known.element)
    value.type = value.declared = known.type
    return value


COPIED_WELL = {I8, I32, I64}
"""Element types that are copied in another way, without a division."""


# Old releases divide by the size of the first axis when they copy a shape such as [0] or [0,1].
# They copy [1,0], so an empty value goes in and out with an axis of size 1 in front.
@clause(
    "Each value that enters or leaves the body has a shape that the plugin copies.",
    retypes=True,
    until="2025.2",
    releases="2024.0 to 2025.2",
    model="test_loop13_seq",
    symptom="A value of shape [0] or [0,1] crashes when it enters or leaves the body of a Loop.",
    cost="Unsqueeze and Squeeze, which copy nothing, for each value of open size that enters or "
    "leaves a Loop. Only for those releases.",
)
def copied_shapes(draft: Draft) -> list[tuple[list[int], list[int]]]:
    """An axis of size 1 is added on one side of the port and removed on the other."""
    body, initial = draft.body, draft.loop.initial
    exits = {i for i, value in enumerate(body.graph.outputs) if _may_end(value)}
    entries = []
    for value, port in body.entries():
        if isinstance(port, Carried) and (_may_end(value) or _may_end(initial(port))):
            exits.add(port.output)
    for index, (value, port) in enumerate(body.entries()):
        passes = isinstance(port, Invariant | Sliced) and _may_end(value)
        if passes or (isinstance(port, Carried) and port.output in exits):
            entries.append(index)
    return [(entries, sorted(exits))] if entries or exits else []


@copied_shapes.gives
def _(draft: Draft, found: list[tuple[list[int], list[int]]]) -> None:
    """Such values enter and leave with one more axis."""
    ((entries, exits),) = found
    b, loop, body = draft.b, draft.loop, draft.body
    inside = Builder([], draft.node.name, b.target)
    read: dict[Value, Value] = {}
    longer: dict[int, int] = {}
    for index in entries:
        value, port = body.graph.inputs[index], body.inputs[index]
        assert isinstance(port, Carried | Invariant | Sliced) and port.input is not None
        outer = loop.inputs[port.input]
        assert outer is not None
        if port.input not in longer:
            longer[port.input] = loop.outer(b.unsqueeze(outer, 0))
        port = replace(port, input=longer[port.input])
        body.inputs[index] = replace(port, axis=port.axis + 1) if isinstance(port, Sliced) else port
        entry = Value(Builder([]).unsqueeze(value, 0).type, list(value.names))
        body.graph.inputs[index] = entry
        read[value] = _shorter(value, inside, entry)
    draft.enter_as(read, inside.nodes)
    for index in exits:
        exit = body.outputs[index]
        body.graph.outputs[index] = loop.inside(b).unsqueeze(body.graph.outputs[index], 0)
        if isinstance(exit, Stacked):
            body.outputs[index] = replace(exit, axis=exit.axis + 1)
        if isinstance(exit, Yield | Stacked) and exit.output is not None:
            loop.after(exit.output, partial(_shorter, loop.node.outputs[exit.output]))
    loop.drop_unused_inputs()


def _shorter(old: Value, b: Builder, value: Value) -> Value:
    """The value without its first axis, of the type that it had before."""
    made = b.squeeze(value, 0)
    made.type = made.declared = old.type
    return made


def _may_end(value: Value | None) -> bool:
    """Whether a value may have a shape that crashes: size 0 along the first axis, and size 1 along
    each other axis."""
    if value is None or not value.rank or value.element in COPIED_WELL:
        return False
    first, *others = value.dims
    return low(first) == 0 and all(low(dim) <= 1 and high(dim) != 0 for dim in others)
