"""Loops that may run no iteration, or whose number of iterations OpenVINO loses."""

from __future__ import annotations

from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, loop_kind
from bridge.neutral.inference.known import known_of
from bridge.neutral.liveness import Needed, unneeded_inputs
from bridge.neutral.ports import Carried, Condition, Iteration, Sliced, Stacked, Yield, outer_input
from bridge.neutral.signs import is_not_negative
from bridge.neutral.types import I64, STRING
from bridge.operators.control.loop_builder import (
    LoopBuilder,
    constant_condition,
    is_positive,
    scalar,
    trips_of_slices,
    turn_forwards,
)
from bridge.passes.fuse.inverses import named_after
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.loops.clause import Draft, clause
from bridge.quirks.loops.guards import asks, in_the_place_of, read_inside
from bridge.quirks.opaque import hides, opaque, revealed, unknown_zero
from bridge.quirks.quirk import Place

SEQUENCES = {"GRUSequence", "LSTMSequence", "RNNSequence"}
"""Operators that OpenVINO turns into TensorIterators."""


# OpenVINO also refuses a layer in the body that it converts to a TensorIterator.
@clause(
    "No TensorIterator stands in the body of another one.",
    symptom="A TensorIterator in the body of another one is refused: No nested TensorIterator.",
    cost="a trip count, computed from a shape, and a reversal of each slice that is read backwards",
)
def no_nested_iterators(draft: Draft) -> list[str]:
    """The trip count is the number of parts of its slices. A slice that is read backwards is
    reversed and read forwards.
    """
    kind = draft.loop.kind
    if kind == "count":
        return []
    around = _in_iterator(draft.place) or any(n.op in SEQUENCES for n in draft.body.graph.walk())
    return [kind] if around else []


@no_nested_iterators.gives
def _(draft: Draft, found: list[str]) -> None:
    """The Loop gets a trip count, and reads its slices forwards."""
    draft.loop.inputs[0] = trips_of_slices(draft.b, draft.loop.inputs, draft.body)
    turn_forwards(draft.b, draft.loop)


def _in_iterator(place: Place) -> bool:
    """Whether a place is inside a TensorIterator, at any depth."""
    holder, outer = place.holder, place.outer
    if holder is None or outer is None:
        return False
    return (holder.op == "Loop" and loop_kind(holder) != "count") or _in_iterator(outer)


# If all inputs are known, the CPU plugin runs the Loop while it compiles the model. OpenVINO
# does so to find the upper bound of a later result. Both fail. The plugin does not know a
# random number before it runs, and OpenVINO does not evaluate a Bucketize.
@clause(
    "One input of the Loop is not known before the model runs.",
    symptom="OpenVINO runs a Loop of constants with a stack and an If while it compiles the model. "
    "It has no memory for this run.",
    cost="a 0 from a Bucketize of a random number below 1/2, for the trip count, a slice or the "
    "first condition",
)
def unknown_input(draft: Draft) -> list[int | None]:
    """The trip count or a slice gets 0 added, or is the only row of a stack. A condition is joined
    with a true one.
    """
    node, place = draft.so_far, draft.place
    unread = unneeded_inputs(node, place.facts(Needed))
    if not all(is_known(v, place) for i, v in enumerate(node.inputs) if i not in unread):
        return []
    sliced = next((port.input for port in draft.body.inputs if isinstance(port, Sliced)), None)
    index = 0 if node.trip_count is not None else sliced
    value = None if index is None else node.inputs[index]
    unhidden = index is not None and (value is None or value.element in (None, STRING))
    return [] if unhidden else [index]


@unknown_input.gives
def _(draft: Draft, found: list[int | None]) -> None:
    """This input is hidden from OpenVINO."""
    (index,), b, inputs = found, draft.b, draft.loop.inputs
    value = None if index is None else inputs[index]
    if index is None or value is None:
        inputs[1] = _unknown_condition(b, inputs[1])
    else:
        inputs[index] = opaque(b, value, "content" if index else "number")


def _unknown_condition(b: Builder, condition: Value | None) -> Value:
    """A condition that OpenVINO does not know."""
    one = b.op("Add", b.constant(1, I64), unknown_zero(b, 0))
    go = b.op("Greater", one, b.constant(0, I64))
    if condition is not None and not is_positive(condition):
        go = b.op("And", scalar(b, condition), go)
    return go


# OpenVINO removes a sliced input that nothing reads.
@clause(
    "The slice that sets the number of iterations is read.",
    symptom="A TensorIterator loses a sliced input that nothing reads, and so its number of "
    "iterations.",
    cost="one Result in the body",
)
def counting_slices(draft: Draft) -> list[Value]:
    """No node reads an output of the body that leads nowhere."""
    if draft.loop.kind == "count":
        return []
    entries, exits = draft.body.entries(), draft.body.exits()
    counter = next(value for value, port in entries if isinstance(port, Sliced))
    # Another clause may have put a copy between.
    is_output = any(exit == Yield(None) and revealed(value) is counter for value, exit in exits)
    return [] if is_output else [counter]


@counting_slices.gives
def _(draft: Draft, found: list[Value]) -> None:
    """The slice becomes an output of the body that leads nowhere, so OpenVINO keeps it."""
    draft.body.add_exit(found[0], Yield(None))


@clause(
    "The first condition is tested when the model runs.",
    symptom="If OpenVINO finds that the first condition of a Loop is false, the outputs are f32[0] "
    "for any states.",
    cost="a Select outside the body, and a 0 from a Bucketize of a random number below 1/2",
)
def asked_condition(draft: Draft) -> list[Value]:
    """A Loop runs no iteration if its trip count is 0 or its condition is false. No iteration reads
    either.
    """
    trips, condition = draft.loop.inputs[:2]
    if trips is None or condition is None or is_positive(condition):
        return []
    return [condition] if is_known(condition, draft.place) and not _is_state(draft.node) else []


@asked_condition.gives
def _(draft: Draft, found: list[Value]) -> None:
    """The trip count is 0 if the condition is false."""
    b, inputs, trips = draft.b, draft.loop.inputs, draft.loop.trip_count
    assert trips is not None
    count = b.op("Where", scalar(b, found[0]), scalar(b, trips), 0)
    # OpenVINO fails if it finds this to be 0, too.
    inputs[:2] = [opaque(b, count, "number"), None]


def _is_state(node: Node) -> bool:
    """Whether a state starts with the trip count or the condition."""
    states = [port for port in node.body.inputs if isinstance(port, Carried)]
    found = {p.input for p in states if not isinstance(node.body.exit_of(p)[1], Condition)}
    return not found.isdisjoint({0, 1})


@asked_condition.undoes("Loop")
def count_and_condition(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The trip count and the condition, from a count that is 0 if the condition is false."""
    trips, condition = node.trip_count, node.condition
    made = trips.producer if trips is not None else None
    if made is None or made.op != "Where" or known_of(made.inputs[2]).ints != (0,):
        return None
    told = condition is not None and known_of(condition).ints != (1,)
    if told or any(outer_input(port) in (0, 1) for port in node.body.inputs):
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.inputs[:2] = [made.inputs[1], made.inputs[0]]
    return in_the_place_of(node, loop_builder.build(b), uses)


FAR = 1 << 30
"""An end behind every element, since no axis is so long. OpenVINO may select it in f32, which has
this number, but not the largest i32."""


@clause(
    "A stack has no parts if no iteration runs.",
    symptom="If a Loop runs no iteration, its stacks have the parts of the inference before.",
    cost="a Slice behind each stack of a Loop that may run no iteration",
)
def parts_of_stacks(draft: Draft) -> list[Stacked]:
    """A Slice up to the trip count, or to 2^30, takes the whole stack. A Slice up to 0 gives the
    empty stack of a Loop without an iteration.
    """
    if draft.is_guarded or not _may_be_idle(draft.loop):
        return []
    node, place = draft.node, draft.place
    return [exit for exit in draft.stacks if not _is_cut(node.outputs[exit.output], place, node)]


@parts_of_stacks.gives
def _(draft: Draft, found: list[Stacked]) -> None:
    """A Slice behind the Loop takes no part if no iteration runs."""
    end = _end(draft.b, draft.loop)
    trips = draft.loop.trip_count
    if trips is not None and _is_known_condition(draft.node):
        # OpenVINO crashes if it finds that the trip count is 0, for example after a reshape of the
        # model to empty inputs.
        draft.loop.inputs[0] = opaque(draft.b, trips, "number")
    for exit in found:
        draft.loop.after(exit.output, partial(_cut, exit.axis, end))


def _cut(axis: int, end: Value, b: Builder, stacked: Value) -> Value:
    return b.cut(stacked, axis, 0, end)


def _may_be_idle(loop: LoopBuilder) -> bool:
    """Whether the trip count or the condition may keep a Loop from running."""
    return any(head is not None and not is_positive(head) for head in loop.inputs[:2])


def _is_cut(stacked: Value, place: Place, loop: Node) -> bool:
    """Whether all readers of a stack are such Slices, perhaps of a hidden stack."""
    users = place.users(stacked)
    return bool(users) and all(u.inputs[0] is stacked and _cuts(u, place, loop) for u in users)


def _cuts(user: Node, place: Place, loop: Node) -> bool:
    if user.op != "Slice":
        return hides(user, "sizes") and _is_cut(user.outputs[0], place, loop)
    end = user.inputs[2]
    made = None if end is None else end.producer
    if made is not None and made.op == "Where":
        return known_of(made.inputs[1]).ints == (FAR,)
    return _is_count(end, loop)


def _end(b: Builder, loop: LoopBuilder) -> Value:
    """The upper bound for the length of a stack, which is 0 if no iteration runs. A trip count that
    cannot be negative is such a bound."""
    trips, condition = loop.trip_count, loop.condition
    tests: list[Value] = []
    if condition is not None and not is_positive(condition):
        tests.append(scalar(b, condition))
    if trips is not None and not is_positive(trips):
        if not tests and is_not_negative(trips):
            return b.vector(b.as_i64(trips))
        tests.insert(0, b.op("Greater", scalar(b, trips), 0))
    return b.op("Where", b.fold("And", tests), [FAR], [0])


def _is_known_condition(node: Node) -> bool:
    """Whether the condition after each iteration of a Loop is a constant."""
    conditions = (value for value, exit in node.body.exits() if isinstance(exit, Condition))
    return all(value.behind("Identity").constant is not None for value in conditions)


def _is_count(end: Value | None, loop: Node) -> bool:
    """Whether a value is the trip count of a Loop, which stacks no more parts than that."""
    trips = loop.trip_count
    if end is None or trips is None:
        return False
    return end.behind(*_AS_IT_IS) is revealed(trips).behind(*_AS_IT_IS) and is_not_negative(end)


_AS_IT_IS = ("Cast", "Identity", "Reshape", "Unsqueeze")
"""Operators that give one number unchanged."""


@parts_of_stacks.undoes("Slice")
def whole_stack(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The stack, from a Slice that ends far behind it, or at its start if the Loop did not run."""
    stack = node.inputs[0]
    loop = stack.producer if stack is not None else None
    if stack is None or loop is None or loop.op != "Loop" or stack.rank is None:
        return None
    start, _, axes, step = (known_of(node.input(i)).ints for i in range(1, 5))
    if start != (0,) or axes is None or len(axes) != 1 or step not in (None, (1,)):
        return None
    along = {
        exit.axis % stack.rank
        for exit in loop.body.outputs
        if isinstance(exit, Stacked) and loop.outputs[exit.output] is stack
    }
    if along != {axes[0] % stack.rank} or not _is_end(node.inputs[2], loop):
        return None
    return named_after(stack, node, uses)


def _is_end(end: Value | None, loop: Node) -> bool:
    """Whether a value is the trip count, or a far end that is 0 if no iteration runs."""
    if _is_count(end, loop):
        return True
    choice = end.producer if end is not None else None
    if choice is None or choice.op != "Where" or known_of(choice.inputs[2]).ints != (0,):
        return False
    far = known_of(choice.inputs[1]).ints
    heads = [v and revealed(v) for v in loop.inputs[:2]]
    return far is not None and far[0] >= FAR and asks(choice.inputs[0], heads)


@parts_of_stacks.undoes("Loop")
def known_condition(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The Loop with a constant condition, from one whose condition compares the iteration number
    with 0.

    All true conditions have one name, and so have all false ones. Without a trip count, OpenVINO
    would see no end of the Loop.
    """
    numbers = {value for value, port in node.body.entries() if isinstance(port, Iteration)}
    found = {
        index: known
        for index, (value, exit) in enumerate(node.body.exits())
        if isinstance(exit, Condition) and (known := _known(value, numbers)) is not None
    }
    if not found or node.trip_count is None:
        return None
    loop_builder = LoopBuilder.of(node)
    for index, holds in found.items():
        inside = loop_builder.inside(b)
        loop_builder.body.graph.outputs[index] = constant_condition(inside, holds)
    return in_the_place_of(node, loop_builder.build(b), uses)


def _known(value: Value, numbers: set[Value]) -> bool | None:
    """The value of a condition that is always true or always false, unless it is a named constant
    already; else None. `numbers` are the numbers of the iteration."""
    made = value.producer
    if made is None or value.names in (["always"], ["never"]):
        return None
    if made.op in ("GreaterOrEqual", "Less"):
        compared = made.inputs[0] in numbers and known_of(made.inputs[1]).ints == (0,)
        return made.op == "GreaterOrEqual" if compared else None
    return True if made.op == "Constant" and known_of(value).ints == (1,) else None


# OpenVINO drops a state that no iteration reads, and with it the initial value.
@clause(
    "Each state is read, or stays as it is.",
    symptom="If no iteration runs, a state that nothing in the body reads is unset memory.",
    cost="one Result in the body for each such state",
)
def read_states(draft: Draft) -> list[Value]:
    """No node reads an output of the body that leads nowhere."""
    body = draft.body
    read = read_inside(body).union(v for v, exit in body.exits() if exit == Yield(None))
    return [
        value
        for value, port in body.entries()
        if isinstance(port, Carried) and value not in read
        if body.graph.outputs[port.output] is not value
    ]


@read_states.gives
def _(draft: Draft, found: list[Value]) -> None:
    """Such a state becomes an output of the body that leads nowhere, so OpenVINO keeps it."""
    for value in found:
        draft.body.add_exit(value, Yield(None))
