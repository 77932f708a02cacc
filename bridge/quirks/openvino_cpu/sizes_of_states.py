"""Sizes of states: OpenVINO takes the first one, where it knows it, for that of all iterations, and
refuses a body that contradicts itself with it, though no node may run so; it gives an unknown size
and that of what the state starts as one symbol, and takes one for the other wherever the body asks
for a size; and it takes the least size after an iteration, and the greatest, for certain, though
none may run."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Yield
from bridge.neutral.types import Interval
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, is_positive
from bridge.quirks.guarded_loops import UNDO, in_a_branch
from bridge.quirks.opaque import hides, opaque, undone, unknown_nothing
from bridge.quirks.quirk import Place, Quirk, rewriting


def hidden_sizes(b: Builder, node: Node, place: Place) -> Result:
    """The start of a state of changing size is hidden in front of the Loop. A Loop that may not run
    goes into a branch of an If, if it gives such a state; where no If may guard it, the sizes after
    an iteration are hidden."""
    loop_builder = LoopBuilder.of(node)
    surely_runs = all(v is None or is_positive(v) for v in (node.trip_count, node.condition))
    given, number, around = False, None, _states_around(place)
    for value, port, initial in _states(loop_builder):
        dims = enumerate(value.shape or ())
        axes = [axis for axis, dim in dims if isinstance(dim, Interval)]
        if not axes:
            continue
        again, exit = loop_builder.body.exit_of(port)
        if exit != Yield(None) and not _is_hidden(again):
            given = True
            if not place.guards and not surely_runs:
                _hide_after(b, loop_builder, port, axes)
        alone = initial in around and place.count(initial) == 1
        of_state = alone and all(isinstance(initial.dims[axis], Interval) for axis in axes)
        if not of_state and not _is_hidden_start(initial, place):
            assert port.input is not None
            number = number or unknown_nothing(b)
            loop_builder.inputs[port.input] = opaque(b, initial, "sizes", axes, number)
    made = Node(
        "Loop", loop_builder.inputs, [Value(v.type) for v in node.outputs], dict(node.attributes),
        node.bodies, node.name, node.extras,
    )  # fmt: skip
    guarded = in_a_branch(b, made, place) if given and place.guards else None
    if guarded is not None:
        return guarded
    return loop_builder.build(b) if loop_builder.changed else None


def _hide_after(b: Builder, loop_builder: LoopBuilder, port: Carried, axes: list[int]) -> None:
    """Hides the sizes of a state after an iteration: for Loops that no If guards."""
    outputs = loop_builder.body.graph.outputs
    value = outputs[port.output]
    outputs[port.output] = opaque(loop_builder.inside(b), value, "sizes", axes)


def _is_hidden_start(initial: Value, place: Place) -> bool:
    """Whether the sizes of what one state alone starts with are hidden, perhaps in front of the
    branch of an If that the Loop is in."""
    holder, body = place.holder, place.body
    outside = holder.captures(body) if holder is not None and body is not None else {}
    value = outside.get(initial) if initial in outside else initial
    return value is not None and _is_hidden(value) and place.count(initial) == 1


def _states_around(place: Place) -> set[Value]:
    """The states of the Loop around, as its body has them. What one of changing size starts with is
    hidden in front of that Loop: a state that starts with it alone begins with a size of which
    OpenVINO knows nothing, and whose symbol nothing else in that body has."""
    holder = place.holder
    if holder is None or holder.op != "Loop":
        return set()
    return {value for value, _, _ in _states(LoopBuilder.of(holder))}


def _states(loop_builder: LoopBuilder) -> Iterator[tuple[Value, Carried, Value]]:
    """The states with what they start with, but the trip count as one, and those whose rank
    differs."""
    for value, port in loop_builder.body.entries():
        initial = loop_builder.initial(port) if isinstance(port, Carried) else None
        if not isinstance(port, Carried) or port.input == 0 or initial is None:
            continue
        if initial.rank == value.rank:
            yield value, port, initial


def _is_hidden(value: Value) -> bool:
    """Whether what makes a value hides its size, or that of what it appends."""
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


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop whose body would fail with the first size of a state is refused; a size that "
    "the body asks of a state is that of the initial state, also where nothing behind the Loop "
    "takes the state; and one that the first iteration would give is taken for certain though "
    "none runs.",
    fires="At a state with a size that changes.",
    safe="The only part of a value, as long as what is left, is the value. One branch is the Loop "
    "where it runs; the other gives what a Loop gives that does not.",
    cost="a VariadicSplit of what each state of changing size starts with, and an If around a "
    "Loop that may not run",
    run=rewriting("Loop", by=hidden_sizes, uses=True),
    undo={**UNDO, **undone("sizes")},
)
