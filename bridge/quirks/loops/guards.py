"""Loops in a branch of an If that tests whether they run. The other branch gives the outputs of a
Loop without an iteration."""

from collections.abc import Iterable, Mapping, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Stacked, Yield, outer_input
from bridge.neutral.signs import is_not_negative
from bridge.neutral.tensor import are_equal
from bridge.neutral.types import is_static
from bridge.operators.bodies import either
from bridge.operators.control.idle import initial_states, shape_of_nothing
from bridge.operators.control.loop_builder import is_positive, scalar
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.opaque import is_hidden, opaque, revealed, whole_of
from bridge.quirks.quirk import Place


def may_be_guarded(node: Node, inputs: Sequence[Value | None]) -> bool:
    """Whether a Loop with these inputs may run no iteration, and an If can give its outputs
    instead."""
    known = all(None not in (value.rank, value.element) for value in node.outputs)
    return bool(node.outputs) and known and bool(_heads(inputs))


def guarded(b: Builder, node: Node, idle: Mapping[int, Value], place: Place) -> list[Value]:
    """An If that tests the trip count and the condition of a Loop.

    The Loop is in the first branch. The second branch gives the initial value of each state, or the
    value in `idle` for that output.
    """
    asked = _heads(node.inputs)
    runs = b.fold("And", [_is_set(b, position, head) for position, head in asked])
    outer = [v for v in (*node.inputs, *idle.values()) if v is not None and v.constant is None]
    outer = list(dict.fromkeys(outer))
    heads = [head for _, head in asked]
    is_open = not all(v in heads or is_known(v, place) for v in outer)

    def runs_on(inner: Builder, inside: list[Value]) -> list[Value]:
        values = dict(zip(outer, inside, strict=True))
        for position, head in asked:
            if position and is_static(head.shape) and not is_hidden(head, "content"):
                true = inner.filled(True, head.shape, head.element)
                # If OpenVINO knows all inputs, it runs the Loop when it compiles the model.
                values[head] = true if is_open else opaque(inner, true, "content")
        inputs = [None if v is None else _in_branch(inner, values, v) for v in node.inputs]
        made = inner.node(
            "Loop", inputs, len(node.outputs), dict(node.attributes), node.bodies, node.name,
            node.extras,
        )  # fmt: skip
        for new, old in zip(made.outputs, node.outputs, strict=True):
            new.type = new.declared = old.type
        return made.outputs

    def gives_back(inner: Builder, inside: list[Value]) -> list[Value]:
        values = dict(zip(outer, inside, strict=True))
        states = {**initial_states(node), **idle}
        return [
            _in_branch(inner, values, states[index])
            if index in states
            else _without_iteration(inner, node, index)
            for index in range(len(node.outputs))
        ]

    results = either(b, runs, outer, runs_on, gives_back)
    for new, old in zip(results, node.outputs, strict=True):
        new.type = new.declared = old.type
    return results


def _in_branch(b: Builder, values: dict[Value, Value], value: Value) -> Value:
    """The value as a branch reads it. Each branch has constants of its own."""
    if value not in values:
        assert value.constant is not None
        values[value] = b.tensor(value.constant, list(value.names))
    return values[value]


def _heads(inputs: Sequence[Value | None]) -> list[tuple[int, Value]]:
    """The trip count (0) and the condition (1) of a Loop, if they may stop it before the first
    iteration."""
    return [
        (position, head)
        for position, head in enumerate(inputs[:2])
        if head is not None and not is_positive(revealed(head))
    ]


def _is_set(b: Builder, position: int, head: Value) -> Value:
    value = scalar(b, head)
    return value if position else b.op("Greater", value, 0)


def _without_iteration(b: Builder, node: Node, index: int) -> Value:
    """An empty stack, or zeros for an output without an initial value."""
    output = node.outputs[index]
    exits = (exit for exit in node.body.outputs if isinstance(exit, Stacked))
    shape = shape_of_nothing(output, next((e.axis for e in exits if e.output == index), None))
    assert output.element is not None and is_static(shape)
    return b.filled(0, shape, output.element)


def is_guarded(inputs: Sequence[Value | None], place: Place) -> bool:
    """Whether a Loop with these inputs is in the first branch of an If that tests whether it
    runs."""
    holder, body = place.holder, place.body
    if holder is None or body is None or holder.op != "If" or body is not holder.then_body:
        return False
    outside = holder.captures(body)
    known = _asked(holder.condition)
    return all(
        (position, outside.get(head.behind("Identity"))) in known
        for position, head in _heads(inputs)
    )


def _asked(condition: Value | None) -> set[tuple[int, Value | None]]:
    """The inputs that a condition tests: (0, trip count) for a comparison with 0, (1, condition)
    for a truth value."""
    found = {(1, condition), (1, _before_reshape(condition))}
    made = None if condition is None else condition.producer
    if made is not None and made.op == "And":
        found.update(asked for value in made.inputs for asked in _asked(value))
    if made is not None and made.op == "Greater":
        found |= {(0, made.inputs[0]), (0, _before_reshape(made.inputs[0]))}
    return found


def _before_reshape(value: Value | None) -> Value | None:
    made = None if value is None else value.producer
    return made.inputs[0] if made is not None and made.op == "Reshape" else value


def guarded_loop(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Replaces an If by the Loop in its branch, if the If tests whether the Loop runs. The other
    branch must give the outputs of a Loop without an iteration."""
    given = {
        port.output: value
        for value, port in node.then_body.exits()
        if isinstance(port, Yield)
        and port.output is not None
        and uses.count(node.outputs[port.output])
    }
    *constants, loop = _needed(node, given.values()) or [node]
    if loop.op != "Loop" or any(own.op != "Constant" for own in constants):
        return None
    outside = node.captures(node.then_body)
    inputs = [None if value is None else outside.get(value, value) for value in loop.inputs]
    for index, start in unread_starts(inputs, loop.body).items():
        inputs[index] = start
        outside |= {value: start for value in (loop.inputs[index],) if value is not None}
    places = {at: loop.outputs.index(v) for at, v in given.items() if v in loop.outputs}
    # Each output of the branch is a different output of the Loop.
    once = len({*places.values()}) == len(given)
    if not given or not once or not _gives_back(node, loop, places, outside):
        return None
    if not asks(node.condition, inputs[:2]):
        inputs[1] = _first_condition(node.condition, inputs[:2])
        if inputs[1] is None:
            return None
    b.nodes += constants
    count = len(loop.outputs)
    made = b.node("Loop", inputs, count, loop.attributes, loop.bodies, loop.name, loop.extras)
    results = [made.outputs[places.get(index, 0)] for index in range(len(node.outputs))]
    return in_the_place_of(node, results, uses)


def _needed(node: Node, values: Iterable[Value]) -> list[Node]:
    """The nodes in the first branch of an If that compute these values."""
    needed: set[Value | None] = {*values}
    nodes: list[Node] = []
    for own in reversed(node.then_body.graph.nodes):
        if not needed.isdisjoint(own.outputs):
            needed.update(own.inputs)
            nodes.insert(0, own)
    return nodes


def _first_condition(test: Value | None, heads: Sequence[Value | None]) -> Value | None:
    """The rest of a test beside `trip count > 0`, if the condition is true in the body. None if the
    test reads the trip count in another way."""
    trips, condition = heads
    made = test.producer if test is not None else None
    parts = made.inputs if made is not None and made.op == "And" else [test]
    left = [part for part in parts if not asks(part, [trips, None])]
    compared = left[0].producer if len(left) == 1 and left[0] is not None else None
    of_trips = compared is not None and any(_is_scalar_of(v, trips) for v in compared.inputs)
    return left[0] if known_of(condition).ints == (1,) and len(left) == 1 and not of_trips else None


def in_the_place_of(node: Node, made: Sequence[Value], uses: Uses) -> Value:
    """Replaces the outputs of a node by these values. Returns the value for the output of the
    pattern."""
    stand = dict(zip(node.outputs, made, strict=True))
    first = stand.pop(uses.output(node))
    for old, new in stand.items():
        if uses.count(old):
            uses.hand_over(old, new, inside=0)
    return first


def read_inside(body: Body) -> set[Value | None]:
    """The values that nodes of a body read."""
    return {value for node in body.graph.nodes for value in node.inputs}


def needed(body: Body) -> set[Value | None]:
    """The values of a body that nodes read, that leave the Loop, or that become such a state."""
    graph = body.graph
    found = read_inside(body).union(v for v, exit in body.exits() if exit != Yield(None))
    size = 0
    while size != len(found):
        size = len(found)
        states = (port for v, port in body.entries() if isinstance(port, Carried) and v in found)
        found.update([graph.outputs[port.output] for port in states])
    return found


def unread_starts(inputs: Sequence[Value | None], body: Body) -> dict[int, Value]:
    """The initial values of states that are not needed, by input. The Loop gets an empty part of
    each of these values."""
    read = needed(body)
    found = {}
    for value, port in body.entries():
        if isinstance(port, Carried) and port.input is not None and value not in read:
            whole = whole_of(inputs[port.input])
            shared = sum(outer_input(other) == port.input for other in body.inputs) > 1
            if whole is not None and not shared:
                found[port.input] = whole
    return found


def _gives_back(
    node: Node, loop: Node, places: Mapping[int, int], outside: Mapping[Value, Value]
) -> bool:
    """Whether the second branch of an If gives the initial states of a Loop, and empty stacks. The
    unknown sizes of these stacks must be 0, as they are in onnxruntime."""
    outer = outside, node.captures(node.else_body)
    states = initial_states(loop)
    axes = {exit.output: exit.axis for exit in loop.body.outputs if isinstance(exit, Stacked)}
    for value, port in node.else_body.exits():
        assert isinstance(port, Yield) and port.output is not None
        if port.output not in places:
            continue
        place = places[port.output]
        if place in states:
            initial = outer[0].get(states[place])
            if initial is None:
                if not are_equal(states[place].constant, value.constant):
                    return False
            elif outer[1].get(value) is not initial:
                return False
        elif place not in axes or value.shape != shape_of_nothing(loop.outputs[place], axes[place]):
            return False
    return True


def asks(test: Value | None, heads: Sequence[Value | None]) -> bool:
    """Whether a test is false only if a Loop with this trip count and condition runs no
    iteration."""
    trips, condition = heads
    if _is_scalar_of(test, condition):
        return True
    made = test.producer if test is not None else None
    if made is not None and made.op == "And":
        return all(asks(part, heads) for part in made.inputs)
    if made is not None and made.op == "Greater" and known_of(made.inputs[1]).ints == (0,):
        return _is_scalar_of(made.inputs[0], trips) and is_not_negative(trips)
    return False


def _is_scalar_of(value: Value | None, whole: Value | None) -> bool:
    """Whether a value is another value of one element, perhaps reshaped."""
    made = value.producer if value is not None else None
    reshaped = made is not None and made.op == "Reshape" and made.inputs[0] is whole
    return whole is not None and (value is whole or reshaped)
