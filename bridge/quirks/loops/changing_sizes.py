"""Loops whose values change their sizes, or have none if no iteration runs."""

from dataclasses import dataclass

from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Stacked, Yield
from bridge.neutral.types import Interval
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.loops.clause import Draft, clause, states_of
from bridge.quirks.loops.guards import guarded_loop
from bridge.quirks.opaque import hides, opaque, unknown_zeros, whole_of
from bridge.quirks.quirk import BOTH, Place


@dataclass(frozen=True)
class Lacking:
    """A state of changing size, the axes along which the size changes, and the missing properties.

    `starts` means that the size of the initial value must be hidden, `guarded` that the Loop must
    stand in an If. If it cannot, `after` means that the size after an iteration must be hidden.
    """

    port: Carried
    axes: list[int]
    starts: bool
    guarded: bool
    after: bool


# Each state of a Loop starts with a size of its own, and OpenVINO does not know this size.
#
# If OpenVINO knows the first size of a state, it assumes this size in all iterations. It
# refuses a body that contradicts it, even if the node with the contradiction never runs so. If
# OpenVINO does not know the first size, it gives one symbol to the size of the initial value,
# and to the size in all iterations. The body may then read one size instead of the other. Two
# states share a symbol if they start with one value, or with results of equal nodes. OpenVINO
# also assumes the bounds of the size after an iteration, though perhaps no iteration runs.
@clause(
    "Each state of changing size starts with a size of its own.",
    engines=BOTH,
    symptom="OpenVINO refuses a Loop if its body would fail with the first size of a state. The "
    "body reads the first size of a state instead of its present size, or the size of another "
    "state with the same start. OpenVINO assumes the size after an iteration, even if no "
    "iteration runs.",
    cost="a VariadicSplit of the initial value of each state of changing size, and an If around a "
    "Loop that may run no iteration",
)
def sizes_of_states(draft: Draft) -> list[Lacking]:
    """The only part of a value, with the rest as its length, is the value. If the Loop runs, the If
    takes the branch with the Loop. The other branch gives the outputs of a Loop without an
    iteration.
    """
    place, body, around = draft.place, draft.body, _states_around(draft.place)
    guards = place.guards and draft.may_be_guarded
    after = not place.guards and not draft.surely_runs
    found = []
    for value, port, initial in draft.states:
        dims = enumerate(value.shape or ())
        axes = [axis for axis, dim in dims if isinstance(dim, Interval)]
        if not axes:
            continue
        again, exit = body.exit_of(port)
        leaves = exit != Yield(None) and not _is_hidden(again)
        alone = initial in around and place.count(initial) == 1
        of_state = alone and all(isinstance(initial.dims[axis], Interval) for axis in axes)
        starts = not of_state and not _is_hidden_start(initial, draft)
        if starts or (leaves and (guards or after)):
            found.append(Lacking(port, axes, starts, leaves and guards, leaves and after))
    return found


@sizes_of_states.gives
def _(draft: Draft, found: list[Lacking]) -> None:
    """The size of the initial value is hidden in front of the Loop. If no iteration may run, and
    the state leaves the Loop, the Loop goes into an If."""
    b, loop = draft.b, draft.loop
    draft.wants_guard |= any(one.guarded for one in found)
    hidden = [one for one in found if one.starts]
    for one, number in zip(hidden, unknown_zeros(b, len(hidden)), strict=True):
        initial = loop.initial(one.port)
        assert initial is not None
        draft.start_with(one.port, opaque(b, initial, "sizes", one.axes, number))
    for one in found:
        if one.after:
            outputs = draft.body.graph.outputs
            again = outputs[one.port.output]
            outputs[one.port.output] = opaque(loop.inside(b), again, "sizes", one.axes)


def _is_hidden_start(initial: Value, draft: Draft) -> bool:
    """Whether the sizes of an initial value are hidden, and no other state starts with it. They may
    be hidden in front of the If around the Loop."""
    value = draft.place.outside(initial)
    hidden = _is_hidden(value) or whole_of(value) is not None
    return hidden and draft.place.count(initial) == 1


def _states_around(place: Place) -> set[Value]:
    """The states of the Loop around. The initial size of such a state is hidden in front of that
    Loop. So a state has a size of its own if it alone starts with such a state."""
    holder = place.holder
    if holder is None or holder.op != "Loop":
        return set()
    return {value for value, _, _ in states_of(LoopBuilder.of(holder))}


def _is_hidden(value: Value) -> bool:
    """Whether the size of a value is hidden, or the size of a part that it joins."""
    made = value.producer
    if made is None:
        return False
    if made.op == "Concat":
        return any(v is not None and _is_hidden(v) for v in made.inputs)
    x = made.input(0)
    reshaped = made.op == "Reshape" and known_of(made.inputs[1]).ints is not None
    if x is not None and (reshaped or made.op == "Cast"):
        return _is_hidden(x)
    return hides(made, "sizes")


sizes_of_states.undoes("If")(guarded_loop)


# The CPU plugin takes open sizes from the inference before. In the first inference it has none.
@clause(
    "A Loop that stacks values and may run no iteration stands in an If that tests whether it "
    "runs.",
    symptom="If a Loop runs no iteration, its stacks have the parts and the open sizes of the "
    "inference before. If the sizes have a lower bound, the first inference fails.",
    cost="an If around a Loop with stacks that may run no iteration",
)
def stacks_without_iteration(draft: Draft) -> list[Stacked]:
    """If the Loop runs, the If takes the branch with the Loop. The other branch gives the outputs
    of a Loop without an iteration.
    """
    return draft.stacks if draft.may_be_guarded else []


@stacks_without_iteration.gives
def _(draft: Draft, found: list[Stacked]) -> None:
    """The Loop stands in an If, whose other branch gives an empty stack of known shape."""
    draft.wants_guard = True


# Old releases of the CPU plugin give the states and stacks of the inference before. The other
# branch of the If gives the initial states, and empty stacks.
@clause(
    "A Loop that may run no iteration stands in an If that tests whether it runs.",
    until="2026.3",
    releases="2024.0 to 2026.3",
    symptom="If a Loop runs no iteration, its states and stacks are those of the inference before.",
    cost="an If around each Loop that may run no iteration. Only for those releases.",
)
def states_without_iteration(draft: Draft) -> list[Draft]:
    """If the Loop runs, the If takes the branch with the Loop. The other branch gives the outputs
    of a Loop without an iteration.
    """
    return [draft] if draft.may_be_guarded else []


@states_without_iteration.gives
def _(draft: Draft, found: list[Draft]) -> None:
    """The Loop goes into an If."""
    draft.wants_guard = True
