"""Each state of a Loop stays at its place in memory, or starts without elements.

An inference copies the initial value of a state to the state's place in memory. The CPU plugin
keeps the place of the inference before, if the last iteration had the sizes of the initial value.
A state of open size may have moved since: an iteration needed more memory. The plugin then writes
into memory that it has freed, and the first iteration reads the old state. Nothing is written where
the initial value has no elements. A state that only grows, or only shrinks, does not come back to
its first sizes.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Invariant, Iteration, Yield
from bridge.neutral.types import Interval, is_static
from bridge.operators.branches import either
from bridge.operators.control.loop_builder import LoopBuilder, iteration_number
from bridge.passes.uses import Uses
from bridge.quirks.growth import Change, change
from bridge.quirks.guarded_loops import in_the_place_of, needed, unread_starts
from bridge.quirks.opaque import unknown_nothings, whole_of, without_elements
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[Carried]:
    """The states that may come back to their first sizes."""
    place = draft.place
    guards = place.guards and draft.may_be_guarded
    if not place.ifs or not (draft.is_guarded or draft.surely_runs or guards):
        return []
    if draft.loop.kind != "count":
        return []
    found = []
    for value, port, initial in draft.states:
        again, _ = draft.body.exit_of(port)
        is_open = any(isinstance(dim, Interval) for dim in value.shape or ())
        # If a size is equal after all iterations, it does not become the first size anew.
        if not is_open or is_static(again.shape) or whole_of(draft.outside(initial)) is not None:
            continue
        if change(again, {value: Change.NONE}) in (None, Change.ANY):
            found.append(port)
    return found


def give(draft: Draft, found: list[Carried]) -> None:
    """Such a state starts without elements. In the first iteration an If reads the initial value
    instead."""
    b, loop, body = draft.b, draft.loop, draft.body
    draft.wants_guard |= draft.may_be_guarded
    read = needed(body)
    starts, states = dict[Value, Value](), dict[Value, Value]()
    for port, number in zip(found, unknown_nothings(b, len(found)), strict=True):
        place, initial = body.inputs.index(port), loop.initial(port)
        assert initial is not None and port.input is not None
        state = body.graph.inputs[place]
        axis = next(a for a, dim in enumerate(state.dims) if isinstance(dim, Interval))
        empty = without_elements(b, initial, axis, number)
        empty.type = state.type
        exit = body.outputs[port.output]
        if isinstance(exit, Yield) and exit.output is not None:
            draft.idle[exit.output] = initial
        body.inputs[place] = Carried(loop.outer(empty), port.output)
        if state in read:
            states[state] = body.graph.inputs[place] = Value(state.type, list(state.names))
            starts[state] = Value(initial.type)
            body.add_entry(starts[state], Invariant(port.input))
    loop.drop_unused_inputs()
    if states:
        _read_first(draft, starts, states)


def _read_first(draft: Draft, starts: dict[Value, Value], states: dict[Value, Value]) -> None:
    """Has the body read the initial value of each of these states in the first iteration, and after
    that the state itself. Both are inputs of the body. The keys are the values that the body reads
    now."""
    inside, count = Builder([], draft.node.name, draft.b.target), len(states)
    first = inside.op("Equal", iteration_number(draft.body), 0)
    outer = [*starts.values(), *states.values()]
    read = either(inside, first, outer, lambda _, v: v[:count], lambda _, v: v[count:])
    for new, old in zip(read, states, strict=True):
        new.type = new.declared = old.type
    draft.enter_as(dict(zip(states, read, strict=True)), inside.nodes)


def from_the_start(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The Loop whose states start with their initial values, without such an If in the body."""
    loop = LoopBuilder.of(node)
    body, found = loop.body, dict[Value, Value]()
    numbers = {value for value, port in body.entries() if isinstance(port, Iteration)}
    ports = dict(body.entries())
    for read in [one for one in body.graph.nodes if one.op == "If" and _is_first(one, numbers)]:
        then, otherwise = read.captures(read.then_body), read.captures(read.else_body)
        for place, value in enumerate(read.outputs):
            start = then.get(read.then_body.given(place))
            state = otherwise.get(read.else_body.given(place))
            if start is None or state is None:
                continue
            fixed, port = ports.get(start), ports.get(state)
            if not isinstance(fixed, Invariant) or not isinstance(port, Carried):
                continue
            empty, initial = loop.initial(port), loop.inputs[fixed.input]
            if empty is None or initial is None or _users(body, state) != [read]:
                continue
            if whole_of(_outside(empty, uses)) is _outside(initial, uses):
                body.inputs[body.inputs.index(port)] = Carried(fixed.input, port.output)
                found[value] = state
    unread = unread_starts(loop.inputs, body)
    for index, start in unread.items():
        loop.inputs[index] = start
    if not found and not unread:
        return None
    graph = body.graph
    for one in graph.nodes:
        one.inputs = [None if v is None else found.get(v, v) for v in one.inputs]
    graph.outputs = [found.get(v, v) for v in graph.outputs]
    loop.drop_unused_inputs()
    return in_the_place_of(node, loop.build(b), uses)


def _is_first(node: Node, numbers: set[Value]) -> bool:
    """Whether an If asks whether the number of the iteration is 0."""
    made = node.condition.producer if node.condition is not None else None
    if made is None or made.op != "Equal" or known_of(made.inputs[1]).ints != (0,):
        return False
    return made.inputs[0] in numbers


def _users(body: Body, value: Value) -> list[Node]:
    """The nodes of a body that take a value, if it is no output."""
    return [] if value in body.graph.outputs else [n for n in body.graph.nodes if value in n.inputs]


def _outside(value: Value, uses: Uses) -> Value:
    """The value in front of the node around the graph; the same value if this graph makes it."""
    if uses.holder is None or uses.body is None:
        return value
    return uses.holder.captures(uses.body).get(value, value)


QUIRK = Clause(
    holds="Each state stays at its place in memory, or starts without elements.",
    lacks=lacks,
    give=give,
    releases="2024.0, 2026.4",
    symptom="A state grows in one iteration and has its first sizes again in the last. The next "
    "inference then starts with the old state, and writes into freed memory, which may crash.",
    fires="At a state of a Loop that may grow and shrink, for example if two states change places; "
    "not with `--ifs select`.",
    safe="In the first iteration an If reads the initial value. If no iteration may run, an If "
    "around the Loop gives the initial value.",
    cost="an If in the body, which copies such a state in each iteration",
    undo={"Loop": from_the_start},
)
