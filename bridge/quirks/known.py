"""What an engine may compute before a model runs."""

from __future__ import annotations

from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Invariant, Yield
from bridge.quirks.quirk import UNFORESEEN, Place, follows_from_constants


def is_known(value: Value | None, place: Place) -> bool:
    """Whether it may compute a value of this graph, by way of the graphs around it, too."""
    if follows_from_constants(value):
        return True
    return value is not None and known_before(place).get(value, False)


def known_before(place: Place) -> dict[Value, bool]:
    """Which values of a graph it may compute."""
    if not place.found:
        given: set[Value] = set()
        if place.outer is not None and place.holder is not None and place.body is not None:
            outer = known_before(place.outer)
            known = {value for value in place.holder.inputs if value and outer.get(value)}
            given = _captured(place.holder, place.body, known)
        computed = _computed(place.graph, given)
        made = (value for node in place.graph.nodes for value in node.outputs)
        place.found.update((value, value in computed) for value in (*place.graph.inputs, *made))
    return place.found


def _captured(node: Node, body: Body, known: set[Value]) -> set[Value]:
    """The inputs of a body that are among these values outside."""
    return {
        value
        for value, port in body.entries()
        if isinstance(port, Invariant) and node.inputs[port.input] in known
    }


def _computed(graph: Graph, known: set[Value]) -> set[Value]:
    """What follows from constants and these values."""
    known = set(known)
    for node in graph.nodes:
        if node.op in UNFORESEEN:
            continue
        if node.op == "If":
            known |= _of_branches(node, known)
        elif all(value is None or value in known for value in node.inputs):
            known.update(node.outputs)
    return known


def _of_branches(node: Node, known: set[Value]) -> set[Value]:
    """The outputs of an If that takes the place of a branch, which may be either."""
    if node.inputs[0] not in known:
        return set()
    found: set[Value] = set()
    for body in node.bodies:
        inside = _computed(body.graph, _captured(node, body, known))
        for value, port in body.exits():
            if value in inside and isinstance(port, Yield) and port.output is not None:
                found.add(node.outputs[port.output])
    return found
