"""Loops that may run no iteration, or whose number of iterations OpenVINO loses."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, loop_kind
from bridge.neutral.inference.known import known_of
from bridge.neutral.liveness import Needed, unneeded_inputs
from bridge.neutral.ports import Carried, Condition, Sliced, Yield
from bridge.neutral.types import STRING, is_static
from bridge.operators.control.loop_builder import (
    LoopBuilder,
    constant_condition,
    is_positive,
    trips_of_slices,
    turn_forwards,
)
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.loops.clause import Draft, clause
from bridge.quirks.loops.guards import in_the_place_of, read_inside
from bridge.quirks.opaque import opaque, revealed
from bridge.quirks.quirk import Place

SEQUENCES = {"GRUSequence", "LSTMSequence", "RNNSequence"}
"""Operators that OpenVINO turns into TensorIterators."""


# OpenVINO also refuses a layer in the body that it converts to a TensorIterator.
@clause(
    "No TensorIterator stands in the body of another one.",
    model="test_scan_sum",
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
    "One input of the Loop is not known before the model runs, nor is a condition that may be "
    "false.",
    symptom="OpenVINO runs a Loop of constants with a stack and an If while it compiles the model. "
    "It has no memory for this run. If it finds that the first condition of a Loop is false, the "
    "outputs are f32[0] for any states.",
    cost="a 0 from a Bucketize of a random number below 1/2, for the trip count, a slice or the "
    "first condition",
)
def unknown_input(draft: Draft) -> list[int]:
    """The trip count gets 0 added. A slice or a condition is the only row of a stack."""
    node, place = draft.so_far, draft.place
    condition = node.condition
    if condition is not None and not is_positive(condition) and is_known(condition, place):
        return [1]
    unread = unneeded_inputs(node, place.facts(Needed))
    if not all(is_known(v, place) for i, v in enumerate(node.inputs) if i not in unread):
        return []
    sliced = next((port.input for port in draft.body.inputs if isinstance(port, Sliced)), None)
    index = 0 if node.trip_count is not None else sliced
    value = None if index is None else node.inputs[index]
    unhidden = index is not None and (value is None or value.element in (None, STRING))
    return [] if unhidden else [1 if index is None else index]


@unknown_input.gives
def _(draft: Draft, found: list[int]) -> None:
    """This input is hidden from OpenVINO."""
    (index,), b, inputs = found, draft.b, draft.loop.inputs
    value = inputs[index]
    hidden = b.constant(True) if value is None else value
    # An input of open size is known because it is empty.
    what = "content" if is_static(hidden.shape) else "shape"
    inputs[index] = opaque(b, hidden, what if index else "number")


@unknown_input.undoes("Loop")
def named_condition(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The Loop with a named constant as its condition. All true conditions have one name. Without a
    trip count, OpenVINO would see no end of the Loop."""
    found = [
        index
        for index, (value, exit) in enumerate(node.body.exits())
        if isinstance(exit, Condition) and value.constant is not None
        if known_of(value).ints == (1,) and value.names not in (["always"], ["never"])
    ]
    if not found or node.trip_count is None:
        return None
    loop_builder = LoopBuilder.of(node)
    for index in found:
        inside = loop_builder.inside(b)
        loop_builder.body.graph.outputs[index] = constant_condition(inside)
    return in_the_place_of(node, loop_builder.build(b), uses)


# OpenVINO removes a slice or a state that nothing reads, with the initial value of the state.
@clause(
    "Each state is read, or stays as it is, and so is the slice that sets the trip count.",
    after=("lengths_of_dynamic_sequence",),
    symptom="A TensorIterator loses a sliced input that nothing reads, and so its number of "
    "iterations. If no iteration runs, a state that nothing in the body reads is unset memory.",
    cost="one Result in the body for each such input",
)
def read_inputs(draft: Draft) -> list[Value]:
    """No node reads an output of the body that leads nowhere."""
    body = draft.body
    shown = {revealed(value) for value, exit in body.exits() if exit == Yield(None)}
    # OpenVINO may drop all nodes that read a slice.
    sliced = [value for value, port in body.entries() if isinstance(port, Sliced)]
    counting = [] if draft.loop.kind == "count" else sliced[:1]
    read = read_inside(body)
    states = [
        value
        for value, port in body.entries()
        if isinstance(port, Carried) and value not in read
        if body.graph.outputs[port.output] is not value
    ]
    return [value for value in (*counting, *states) if value not in shown]


@read_inputs.gives
def _(draft: Draft, found: list[Value]) -> None:
    """Such an input becomes an output of the body that leads nowhere, so OpenVINO keeps it."""
    for value in found:
        draft.body.add_exit(value, Yield(None))
