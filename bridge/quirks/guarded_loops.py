"""Loops in a branch of an If that asks whether they run; its other branch gives what a Loop gives
that runs no iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Stacked, Yield
from bridge.neutral.signs import is_not_negative
from bridge.neutral.tensor import are_equal
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.operators.branches import either
from bridge.operators.control.idle import initial_states, shape_of_nothing
from bridge.operators.control.loop_builder import is_positive, scalar
from bridge.passes.uses import Uses
from bridge.quirks.opaque import revealed
from bridge.quirks.quirk import Place, Undo


def in_a_branch(b: Builder, node: Node, place: Place) -> Result:
    """An If that asks for the trip count and the condition; None where the Loop surely runs, or is
    in such a branch."""
    asked = _heads(node)
    known = all(None not in (value.rank, value.element) for value in node.outputs)
    if not asked or not node.outputs or not known or is_guarded(node, place):
        return None
    tests = [_is_set(b, position, head) for position, head in asked]
    runs = tests[0] if len(tests) == 1 else b.op("And", *tests)
    outer = [value for value in node.inputs if value is not None and value.constant is None]
    outer = list(dict.fromkeys(outer))

    def runs_on(inner: Builder, inside: list[Value]) -> list[Value]:
        values = dict(zip(outer, inside, strict=True))
        for position, head in asked:
            if position and is_static(head.shape):
                values[head] = inner.filled(True, head.shape, head.element)
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
        states = initial_states(node)
        return [
            _in_branch(inner, values, states[index])
            if index in states
            else _nothing(inner, node, index)
            for index in range(len(node.outputs))
        ]

    results = either(b, runs, outer, runs_on, gives_back)
    for new, old in zip(results, node.outputs, strict=True):
        new.type = new.declared = old.type
    return results


def _in_branch(b: Builder, values: dict[Value, Value], value: Value) -> Value:
    """What a value is in a branch, which has constants of its own."""
    if value not in values:
        assert value.constant is not None
        values[value] = b.tensor(value.constant, list(value.names))
    return values[value]


def _heads(node: Node) -> list[tuple[int, Value]]:
    """The trip count (0) and condition (1) of a Loop, as far as they may keep it from running."""
    return [
        (position, head)
        for position, head in enumerate(node.inputs[:2])
        if head is not None and not _is_surely_set(head)
    ]


def _is_surely_set(head: Value) -> bool:
    """Whether a trip count or a condition is known to be above 0, or true, though it is hidden."""
    made = head.producer
    if made is not None and made.op == "Greater" and known_of(made.inputs[1]).ints == (0,):
        head = made.inputs[0] or head
    return is_positive(revealed(head))


def _is_set(b: Builder, position: int, head: Value) -> Value:
    value = scalar(b, head)
    return value if position else b.op("Greater", value, 0)


def _nothing(b: Builder, node: Node, index: int) -> Value:
    """A stack without parts, or zeros for what is no state."""
    output = node.outputs[index]
    exits = (exit for exit in node.body.outputs if isinstance(exit, Stacked))
    shape = shape_of_nothing(output, next((e.axis for e in exits if e.output == index), None))
    assert output.element is not None and is_static(shape)
    return b.filled(0, shape, output.element)


def is_guarded(node: Node, place: Place) -> bool:
    """Whether a Loop is in the first branch of an If that asks whether it runs."""
    holder, body = place.holder, place.body
    if holder is None or body is None or holder.op != "If" or body is not holder.then_body:
        return False
    outside = holder.captures(body)
    known = _asked(holder.condition)
    return all(
        (position, outside.get(head.behind("Identity"))) in known for position, head in _heads(node)
    )


def _asked(condition: Value | None) -> set[tuple[int, Value | None]]:
    """What a condition holds to be above 0 or true, if it is such a one."""
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
    """A Loop in the branch of an If that asks whether it runs is the Loop, where the other branch
    gives what it gives when it does not."""
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
    places = {at: loop.outputs.index(v) for at, v in given.items() if v in loop.outputs}
    # The outputs are the Loop's, each another one.
    if not given or len({*places.values()}) < len(given) or not _gives_back(node, loop, places):
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
    """The nodes in the first branch of an If that these values need."""
    needed: set[Value | None] = {*values}
    nodes: list[Node] = []
    for own in reversed(node.then_body.graph.nodes):
        if not needed.isdisjoint(own.outputs):
            needed.update(own.inputs)
            nodes.insert(0, own)
    return nodes


def _first_condition(test: Value | None, heads: Sequence[Value | None]) -> Value | None:
    """What a test asks beside that a trip count is above 0, where the condition is true inside;
    None where it asks something else of the trip count."""
    trips, condition = heads
    made = test.producer if test is not None else None
    parts = made.inputs if made is not None and made.op == "And" else [test]
    left = [part for part in parts if not asks(part, [trips, None])]
    compared = left[0].producer if len(left) == 1 and left[0] is not None else None
    of_trips = compared is not None and any(_is_scalar_of(v, trips) for v in compared.inputs)
    return left[0] if known_of(condition).ints == (1,) and len(left) == 1 and not of_trips else None


def in_the_place_of(node: Node, made: Sequence[Value], uses: Uses) -> Value:
    """Has values stand for the outputs of a node; that for the output which a pattern gives."""
    stand = dict(zip(node.outputs, made, strict=True))
    first = stand.pop(uses.output(node))
    for old, new in stand.items():
        if uses.count(old):
            uses.hand_over(old, new, inside=0)
    return first


def _gives_back(node: Node, loop: Node, places: Mapping[int, int]) -> bool:
    """Whether the second branch of an If gives the initial states of a Loop, and for its stacks
    nothing, where sizes that are not known are 0, as they are in onnxruntime."""
    outer = node.captures(node.then_body), node.captures(node.else_body)
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
    """Whether a test fails in no case but that in which a Loop with this trip count and condition
    runs no iteration."""
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
    """Whether a value is another one of one element, perhaps reshaped."""
    made = value.producer if value is not None else None
    reshaped = made is not None and made.op == "Reshape" and made.inputs[0] is whole
    return whole is not None and (value is whole or reshaped)


UNDO: Mapping[str, Undo] = {"If": guarded_loop}
