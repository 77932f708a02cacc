"""Loops whose states share memory, or are written to memory that has moved."""

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Facts
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Invariant, Iteration, Yield
from bridge.neutral.rewrite import ValueUses, replace_values
from bridge.neutral.types import STRING, Interval, is_static
from bridge.operators.bodies import either
from bridge.operators.control.loop_builder import LoopBuilder, iteration_number
from bridge.passes.uses import Uses
from bridge.quirks.growth import Change, Growth
from bridge.quirks.loops.clause import Draft, clause
from bridge.quirks.loops.guards import in_the_place_of, needed, unread_starts
from bridge.quirks.opaque import hides, opaque, unknown_zeros, whole_of, without_elements
from bridge.quirks.quirk import MOVES, RECURRENT, Place, is_computed_in, may_hold

OWN_MEMORY = {
    "ArgMax", "ArgMin", "Constant", "Conv", "ConvTranspose", "Gather", "GatherElements", "GatherND",
    "If", "Loop", "MatMul", "NonZero", "Range", "Shape", "Size", "TopK", *RECURRENT,
}  # fmt: skip
"""Operators that never write into the memory of their inputs."""

VIEWS = {"Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"}
"""Operators that write nothing into the memory of their inputs, but may give views of it."""

PARTS = {"Split", "VariadicSplit", "ir::Split"}
"""Operators that give parts of their first input as views."""


# No state shares memory with a value that an iteration reads later.
#
# OpenVINO's CPU plugin computes operators in place, in the memory of their first input, even if
# this input is a Parameter of the body. If a state is computed in place from a slice or from
# another state, it lies in the memory of that input. The plugin writes the next slice or state
# there before an operator reads the first state. `h = x + h` over the slices x gives wrong
# numbers, and so does `a, b = b, a + b`. An input that is the same in every iteration is
# overwritten in the first one. A rotary embedding writes over its operand, too. A Gather of one
# row and a Split give views of their input. A maximum of the input with itself is not computed
# in place, so it has memory of its own.
@clause(
    "No state shares memory with a value that an iteration reads later.",
    symptom="A state that is computed in the memory of a Parameter of the body, or in a part of "
    "it, is overwritten before it is read. So h = x + h over slices x is wrong. A rotary "
    "embedding of a value that a Loop captures rotates it again in each iteration.",
    cost="a copy of each input of a body in whose memory a state may lie",
)
def memory_inside(draft: Draft) -> list[Value]:
    """The maximum of a value with itself is the value, and so is the only row of a stack of it."""
    return _endangered(draft.body)


@memory_inside.gives
def _(draft: Draft, found: list[Value]) -> None:
    """The body reads a copy of each such input."""
    inside = Builder([], draft.node.name, draft.b.target)
    copied = {v: opaque(inside, v, "memory" if _is_computed_in(v) else "content") for v in found}
    draft.enter_as(copied, inside.nodes)


def _endangered(body: Body) -> list[Value]:
    graph = body.graph
    places, uses = _places(graph), ValueUses(graph)
    found: set[Value] = set()
    fixed: set[Value] = set()
    for value, port in body.entries():
        if isinstance(port, Carried):
            found |= places.get(graph.outputs[port.output], set()) - {value}
        elif isinstance(port, Invariant):
            fixed.add(value)
    # An input that is the same in all iterations may be read in place. But a state must not lie in
    # its memory, and no operator may overwrite it.
    overwritten = {place for node in graph.nodes for place in _overwritten(node, places, uses)}
    lost = fixed & (overwritten | _given(graph))
    found = (found - fixed) | {value for value in lost if _is_computed_in(value)}
    return [v for v in graph.inputs if v in found and v.element not in (None, STRING)]


def _is_computed_in(value: Value) -> bool:
    return value.element is not None and is_computed_in(value.element)


def _places(graph: Graph) -> dict[Value, set[Value]]:
    """The inputs of the graph in whose memory each value may lie."""
    places = {value: {value} for value in graph.inputs}
    for node in graph.nodes:
        is_part = node.op in PARTS or _is_row(node)
        if not is_part and _has_own_memory(node):
            continue
        for output in node.outputs:
            places[output] = {
                place
                for index, value in enumerate(node.inputs)
                if value is not None and ((is_part and not index) or may_hold(value, output))
                for place in places.get(value, ())
            }
    return places


def _is_row(node: Node) -> bool:
    """Whether a node gathers one known row."""
    if node.op != "Gather" or node.attributes["batch_dims"]:
        return False
    return len(known_of(node.inputs[1]).ints or ()) == 1


def _given(graph: Graph) -> set[Value | None]:
    """The outputs of the graph, and the values of which they are views."""
    found: set[Value | None] = {*graph.outputs}
    for node in reversed(graph.nodes):
        if _is_view(node) and not found.isdisjoint(node.outputs):
            found.add(node.inputs[0])
    return found


def _is_view(node: Node) -> bool:
    return node.op in VIEWS or (node.op == "Cast" and may_hold(node.operand(0), node.outputs[0]))


def _overwritten(node: Node, places: dict[Value, set[Value]], uses: ValueUses) -> set[Value]:
    first = node.input(0)
    if first is None or _is_view(node) or _has_own_memory(node):
        return set()
    is_held = any(may_hold(first, output) for output in node.outputs)
    return places.get(first, set()) if is_held or _is_rotated(node, uses) else set()


def _has_own_memory(node: Node) -> bool:
    """Whether the output of a node surely has memory of its own.

    OpenVINO drops a Slice if it knows that the Slice takes everything. It replaces several known
    Slices by a Split, which is in place.
    """
    if node.op == "Slice":
        return any(v is not None and v.constant is None for v in node.inputs[1:3])
    return node.op in OWN_MEMORY or hides(node, "memory")


def _is_rotated(node: Node, uses: ValueUses) -> bool:
    """Whether a node may be the first Split of a rotary embedding: all its parts are multiplied."""
    if node.op != "VariadicSplit":
        return False
    users = [user for value in node.outputs for user in uses.users(value)]
    return bool(users) and all(user.op == "Mul" for user in users)


KEPT = (Change.SAME, Change.MORE, Change.LESS)
"""The changes of a state that does not come back to its first sizes, unless it keeps them."""

SHOWN = frozenset({"Cast", "Identity", *MOVES})
"""Operators that may give their operand as a view."""

PRODUCTS = frozenset({"Einsum", "MatMul"})
"""Operators for which OpenVINO makes a view of an operand, if it is a vector or transposed."""


# Several views of a state behind its Loop do not share the memory of the state.
#
# OpenVINO's CPU plugin reads the operand of a Reshape in place. If one node takes several views
# of one value, the plugin copies all but one. The number of iterations may differ from the
# inference before. Then a state of open size has another place in memory behind its Loop. The
# copy still reads the old place, which may hold other values by then. A maximum of the state
# with itself gives it memory of its own.
@clause(
    "Several views of a state behind the Loop do not share its memory.",
    symptom="A node may take two views of a Loop's state of open size, such as a product of a "
    "vector with itself. One view then shows other memory after the number of iterations has "
    "changed.",
    cost="a Maximum of such a state with itself",
)
def memory_behind(draft: Draft) -> list[int]:
    """The maximum of a value with itself is the value."""
    states = {exit.output for exit in draft.body.outputs if isinstance(exit, Yield)}
    outputs = enumerate(draft.node.outputs)
    return [i for i, value in outputs if i in states and _is_lost_behind(value, draft.place)]


@memory_behind.gives
def _(draft: Draft, found: list[int]) -> None:
    """A Maximum of the state with itself, behind the Loop."""
    for index in found:
        draft.loop.after(index, lambda b, state: opaque(b, state, "memory"))


def _is_lost_behind(value: Value, place: Place) -> bool:
    """Whether a state of open size has several views."""
    if is_static(value.shape) or value.element is None or not is_computed_in(value.element):
        return False
    return _views(value, place) > 1


def _views(state: Value, place: Place) -> int:
    """How many operands of operators are views of a state, or views of views."""
    count, left = 0, [state]
    while left:
        view = left.pop()
        users = place.users(view)
        left += [user.outputs[0] for user in users if user.op in SHOWN and user.inputs[0] is view]
        count += sum(user.inputs.count(view) for user in users if user.op in PRODUCTS)
        count += view is not state and any(user.op not in SHOWN | PRODUCTS for user in users)
    return count


# Each state of a Loop stays at its place in memory, or starts without elements.
#
# An inference copies the initial value of a state to the state's place in memory. The CPU
# plugin keeps the place of the inference before, if the last iteration had the sizes of the
# initial value. A state of open size may have moved since: an iteration needed more memory. The
# plugin then writes into memory that it has freed, and the first iteration reads the old state.
# Nothing is written where the initial value has no elements. A state that only grows, or only
# shrinks, does not come back to its first sizes.
@clause(
    "Each state stays at its place in memory, or starts without elements.",
    releases="2024.0, 2026.4",
    symptom="A state grows in one iteration and has its first sizes again in the last. The next "
    "inference then starts with the old state, and writes into freed memory, which may crash.",
    cost="an If in the body, which copies such a state in each iteration",
)
def place_of_states(draft: Draft) -> list[Carried]:
    """In the first iteration an If reads the initial value. If no iteration may run, an If around
    the Loop gives the initial value.
    """
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
        if (
            not is_open
            or is_static(again.shape)
            or whole_of(draft.place.outside(initial)) is not None
        ):
            continue
        if Facts(Growth(value), draft.body.graph).of(again) not in KEPT:
            found.append(port)
    return found


@place_of_states.gives
def _(draft: Draft, found: list[Carried]) -> None:
    """Such a state starts without elements. In the first iteration an If reads the initial value
    instead."""
    b, loop, body = draft.b, draft.loop, draft.body
    draft.wants_guard |= draft.may_be_guarded
    read = needed(body)
    starts, states = dict[Value, Value](), dict[Value, Value]()
    for port, number in zip(found, unknown_zeros(b, len(found)), strict=True):
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


@place_of_states.undoes("Loop")
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
    replace_values(body.graph, found)
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
