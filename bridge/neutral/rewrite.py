"""Putting values in the place of others."""

from __future__ import annotations

from dataclasses import replace

from bridge.neutral.builder import constant_value
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import InputPort, Invariant, Iteration, outer_input
from bridge.neutral.types import meet


class Substitution:
    """Which value stands for which; consumers ask it as they are reached, in order."""

    def __init__(self) -> None:
        self._map: dict[Value, Value] = {}

    def __bool__(self) -> bool:
        return bool(self._map)

    def of(self, value: Value) -> Value:
        """The value that stands for `value` now."""
        while (next := self._map.get(value)) is not None:
            value = next
        return value

    def apply(self, node: Node) -> None:
        """Replaces the inputs of a node."""
        if self._map:
            node.inputs = [None if v is None else self.of(v) for v in node.inputs]
            if node.extras and "provenance" in node.extras:
                node.extras["provenance"] = node.extras["provenance"].of(self.of)

    def applied(self, node: Node) -> Node:
        """The node, or one in its place that takes other inputs."""
        inputs = [None if v is None else self.of(v) for v in node.inputs]
        if inputs == node.inputs:
            return node
        return Node(
            node.op,
            inputs,
            list(node.outputs),
            dict(node.attributes),
            node.bodies,
            node.name,
            node.extras,
        )

    def replace(self, old: Value, new: Value) -> None:
        """`new` takes the place, the names and what is known of the type of `old`."""
        new = self.of(new)
        if new is old:
            return
        for name in old.names:
            if name not in new.names:
                new.names.append(name)
        new.type = meet(new.type, old.type)
        new.declared = meet(new.declared, old.type)
        if new.known_value is None:
            new.known_value = old.known_value
        self._map[old] = new

    def finish(self, graph: Graph) -> None:
        """Replaces the outputs of a graph."""
        if self._map:
            graph.outputs = [self.of(v) for v in graph.outputs]


def drop_unused_inputs(node: Node, first: int) -> None:
    """Removes inputs of a node with bodies, from index `first` on, that no port names any more."""
    named = {outer_input(port) for body in node.bodies for port in body.inputs}
    keep = [i for i in range(len(node.inputs)) if i < first or i in named]
    if len(keep) == len(node.inputs):
        return
    moved = {old: new for new, old in enumerate(keep)}
    node.inputs = [node.inputs[i] for i in keep]
    for body in node.bodies:
        body.inputs = [
            port
            if isinstance(port, Iteration) or port.input is None
            else replace(port, input=moved[port.input])
            for port in body.inputs
        ]


def sink_constants(node: Node) -> bool:
    """Gives each body its own clone of the constants that it captures; whether there are any."""
    sunk = False
    for body in node.bodies:
        sunk = _sink_into(node, body) or sunk
    if sunk:
        drop_unused_inputs(node, 1 if node.op == "If" else 2)
    return sunk


def _sink_into(node: Node, body: Body) -> bool:
    def is_constant(_: Value, port: InputPort) -> bool:
        outer = node.inputs[port.input] if isinstance(port, Invariant) else None
        return outer is not None and outer.constant is not None

    constants: list[Node] = []
    for value, port in body.take_entries(is_constant):
        assert isinstance(port, Invariant)
        outer = node.inputs[port.input]
        assert outer is not None and outer.constant is not None
        known = constant_value(outer.constant)
        value.type, value.known_value = known.type, known.known_value
        attributes = {"value": outer.constant}
        constants.append(Node("Constant", [], [value], attributes, (), value.name))
    body.graph.nodes[:0] = constants
    return bool(constants)
