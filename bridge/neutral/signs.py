"""Which integers cannot be negative, as far as the nodes that make them tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.dims import known_integers
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Sliced
from bridge.vocabulary import has_trait

Inside = Mapping[Value, Value | bool | None]
"""What is known of the inputs of bodies: the value outside that they are, or whether they cannot be
negative."""


def is_not_negative(value: Value | None, depth: int = 8, inside: Inside | None = None) -> bool:
    """Whether no element can be negative; `depth` bounds how many nodes back it looks."""
    inside = inside or {}
    while value is not None and value in inside:
        known = inside[value]
        if isinstance(known, bool):
            return known
        value = known
    if value is None:
        return False
    content, producer = value.known_value, value.producer
    if content is not None and None not in content:
        # A symbol stands for the size of an axis.
        return all(isinstance(x, str) or (x is not None and x >= 0) for x in content)
    if producer is None or depth == 0:
        return False
    if producer.bodies:
        given = _given(producer, producer.outputs.index(value), depth - 1, inside)
        return all(is_not_negative(part, depth - 1, within) for part, within in given)
    return _makes_none(producer, depth - 1, inside)


def _makes_none(node: Node, depth: int, inside: Inside) -> bool:
    """Whether a node without bodies makes no negative number."""
    if has_trait(node.op, "not_negative"):
        return True
    if replaces_negative(node):
        return is_not_negative(node.inputs[1], depth, inside)
    if node.op == "Compress" and _asks_for(node.inputs[1], node.inputs[0]):
        return True
    parts = (is_not_negative(v, depth, inside) for v in _elements_from(node))
    if node.op == "Max":
        return any(parts)
    if node.op == "Pad" or has_trait(node.op, "not_negative_of_all"):
        return all(parts)
    return has_trait(node.op, "elements_of_first") and next(parts)


def _elements_from(node: Node) -> list[Value | None]:
    """The inputs that elements of the output come from."""
    if node.op == "Where":
        return node.inputs[1:]
    if node.op == "Pad":
        value = node.input(2)
        return [node.inputs[0]] if value is None else [node.inputs[0], value]
    return node.inputs


def _asks_for(condition: Value | None, value: Value | None) -> bool:
    """Whether a condition is that elements are not negative: x >= 0, or not x < 0."""
    made, op = condition.producer if condition is not None else None, "GreaterOrEqual"
    if made is not None and made.op == "Not":
        made, op = made.inputs[0].producer if made.inputs[0] is not None else None, "Less"
    if made is None or made.op != op or made.inputs[0] is not value:
        return False
    return known_integers(made.inputs[1]) == (0,)


def replaces_negative(node: Node) -> bool:
    """Whether a node is Where(x < 0, y, x)."""
    asked = node.inputs[0].producer if node.op == "Where" and node.inputs[0] is not None else None
    if asked is None or asked.op != "Less" or asked.inputs[0] is not node.inputs[2]:
        return False
    return known_integers(asked.inputs[1]) == (0,)


def _given(
    node: Node, place: int, depth: int, inside: Inside
) -> Iterator[tuple[Value | None, Inside]]:
    """What the bodies of a node give for one of its outputs, and what is known in there."""
    for body in node.bodies:
        within = {**inside, **_entries(node, body)}
        if node.op == "Loop":
            within |= _states(node, body, depth, within)
        for value, exit in body.exits():
            if not isinstance(exit, Condition) and exit.output == place:
                yield value, within
                # Without an iteration a state is what it was at first.
                for state, port in body.entries():
                    if isinstance(port, Carried) and body.graph.outputs[port.output] is value:
                        yield state, within


def _entries(node: Node, body: Body) -> dict[Value, Value | bool | None]:
    """What a body sees of the values outside."""
    seen: dict[Value, Value | bool | None] = {}
    for value, port in body.entries():
        if isinstance(port, Iteration):
            seen[value] = True
        elif isinstance(port, Invariant | Sliced):
            seen[value] = node.inputs[port.input]
    return seen


def _states(node: Node, body: Body, depth: int, inside: Inside) -> dict[Value, Value | bool | None]:
    """Whether the states of a Loop are never negative: those that are not so at first, and that no
    iteration makes so as long as none of them is."""
    states = {
        value: port
        for value, port in body.entries()
        if isinstance(port, Carried)
        and port.input is not None
        and is_not_negative(node.inputs[port.input], depth, inside)
    }
    kept = set(states)
    while True:
        within = {**inside, **dict.fromkeys(states, False), **dict.fromkeys(kept, True)}
        holds = {
            value
            for value in kept
            if is_not_negative(body.graph.outputs[states[value].output], depth, within)
        }
        if holds == kept:
            return {value: value in kept for value in states}
        kept = holds
