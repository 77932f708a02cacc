"""Loops with values that an engine does not copy into the body, or out of it."""

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.ports import Carried, Invariant, Sliced, Stacked, Yield
from bridge.neutral.types import (
    F4E2M1,
    F8E8M0,
    F32,
    I8,
    I32,
    I64,
    U2,
    U8,
    high,
    low,
)
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
def _(draft: Draft, found: list[Value]) -> None:
    """Such values enter and leave the body in a wider type."""
    entries, exits = (
        [index for index, value in enumerate(values) if value.element in WIDER]
        for values in (draft.body.graph.inputs, draft.body.graph.outputs)
    )
    _carry(draft, entries, exits, _widened, lambda b, value, old: b.cast(value, old.element))


def _widened(b: Builder, value: Value) -> Value:
    return value if value.element is None else b.cast(value, WIDER[value.element])


PortForm = Callable[[Builder, Value], Value]
"""Makes the form of a value in which it passes a port."""

PortBack = Callable[[Builder, Value, Value], Value]
"""Makes the value from its form; the last operand is the original value."""


def _carry(
    draft: Draft,
    entries: Collection[int],
    exits: Collection[int],
    form: PortForm,
    back: PortBack,
    axes: int = 0,
) -> None:
    """Has inputs and outputs of the body pass their ports in another form, which has so many more
    axes in front."""
    b, loop, body = draft.b, draft.loop, draft.body
    inside = Builder([], draft.node.name, b.target)
    read: dict[Value, Value] = {}
    formed: dict[int, int] = {}
    for index in entries:
        value, port = body.graph.inputs[index], body.inputs[index]
        assert isinstance(port, Carried | Invariant | Sliced) and port.input is not None
        outer = loop.inputs[port.input]
        assert outer is not None
        if port.input not in formed:
            formed[port.input] = loop.outer(form(b, outer))
        port = replace(port, input=formed[port.input])
        body.inputs[index] = (
            replace(port, axis=port.axis + axes) if isinstance(port, Sliced) else port
        )
        entry = Value(form(Builder([]), value).type, list(value.names))
        body.graph.inputs[index] = entry
        read[value] = _of_type(back(inside, entry, value), value)
    draft.enter_as(read, inside.nodes)
    for index in exits:
        exit = body.outputs[index]
        body.graph.outputs[index] = form(loop.inside(b), body.graph.outputs[index])
        if isinstance(exit, Stacked):
            body.outputs[index] = replace(exit, axis=exit.axis + axes)
        if isinstance(exit, Yield | Stacked) and exit.output is not None:
            loop.after(exit.output, partial(_back, back, loop.node.outputs[exit.output]))
    loop.drop_unused_inputs()


def _back(back: PortBack, old: Value, b: Builder, value: Value) -> Value:
    return _of_type(back(b, value, old), old)


def _of_type(value: Value, known: Value) -> Value:
    if value.element is known.element:
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
    _carry(
        draft, entries, exits, lambda b, value: b.unsqueeze(value, 0),
        lambda b, value, old: b.squeeze(value, 0), axes=1,
    )  # fmt: skip


def _may_end(value: Value | None) -> bool:
    """Whether a value may have a shape that crashes: size 0 along the first axis, and size 1 along
    each other axis."""
    if value is None or not value.rank or value.element in COPIED_WELL:
        return False
    first, *others = value.dims
    return low(first) == 0 and all(low(dim) <= 1 and high(dim) != 0 for dim in others)
