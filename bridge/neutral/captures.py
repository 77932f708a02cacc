"""The inputs and outputs of nodes with bodies: captured values, and unread inputs, captured
constants, unused outputs that go."""

from collections.abc import Sequence
from dataclasses import replace

from bridge.neutral.builder import constant_node
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Invariant,
    Iteration,
    Sliced,
    Yield,
    outer_input,
)


class Captures:
    """The inputs of a new node with bodies: its named inputs, then each distinct captured value,
    however many bodies take it."""

    def __init__(self, inputs: list[Value | None]) -> None:
        self.inputs = inputs
        self._places: dict[Value, int] = {}

    def index(self, outer: Value) -> int:
        """The place of a captured value, which is added if it is new."""
        if outer not in self._places:
            self._places[outer] = self.add(outer)
        return self._places[outer]

    def add(self, value: Value | None = None) -> int:
        """The place of a new input. A value that is not known yet is put there later."""
        self.inputs.append(value)
        return len(self.inputs) - 1


def drop_unused_inputs(node: Node) -> bool:
    """Removes inputs of a node with bodies that no port names any more; whether there were any. The
    condition of an If, and the trip count and the condition of a Loop, stay."""
    first = 1 if node.op == "If" else 2
    named = {outer_input(port) for body in node.bodies for port in body.inputs}
    keep = [i for i in range(len(node.inputs)) if i < first or i in named]
    if len(keep) == len(node.inputs):
        return False
    moved = {old: new for new, old in enumerate(keep)}
    node.inputs = [node.inputs[i] for i in keep]
    for body in node.bodies:
        body.inputs = [
            port
            if isinstance(port, Iteration) or port.input is None
            else replace(port, input=moved[port.input])
            for port in body.inputs
        ]
    return True


def drop_unread_captures(body: Body, counted: bool = True) -> bool:
    """Removes the captures of a body that no node in the body reads; returns whether there were
    any. A Loop that is not `counted` keeps one slice, because it says how often the Loop runs."""
    read: set[Value | None] = {*body.graph.outputs}
    for node in body.graph.nodes:
        read.update(node.inputs)
    slices = [value for value, port in body.entries() if isinstance(port, Sliced)]
    if not counted and read.isdisjoint(slices):
        read.update(slices[:1])
    gone = body.take_entries(
        lambda value, port: value not in read and isinstance(port, Invariant | Sliced)
    )
    return bool(gone)


def keep_outputs(bodies: Sequence[Body], kept: Sequence[int]) -> None:
    """Makes bodies give only values for these outputs of their node. States go on without one."""
    moved = {old: new for new, old in enumerate(kept)}
    for body in bodies:
        carried = {port.output for port in body.inputs if isinstance(port, Carried)}
        exits = []
        for index, port in enumerate(body.outputs):
            if not isinstance(port, Condition) and port.output is not None:
                if port.output in moved:
                    body.outputs[index] = replace(port, output=moved[port.output])
                elif index in carried:
                    body.outputs[index] = Yield(None)
                else:
                    continue
            exits.append(index)
        body.keep_exits(exits)


def sink_constants(node: Node) -> bool:
    """Gives each body its own clone of the constants that it captures; whether there are any."""
    sunk = False
    for body in node.bodies:
        sunk = _sink_into(node, body) or sunk
    if sunk:
        drop_unused_inputs(node)
    return sunk


def _sink_into(node: Node, body: Body) -> bool:
    def is_constant(_: Value, port: InputPort) -> bool:
        outer = node.inputs[port.input] if isinstance(port, Invariant) else None
        return outer is not None and outer.constant is not None

    constants: list[Node] = []
    for value, port in body.take_entries(is_constant):
        assert isinstance(port, Invariant)
        constants.append(constant_node(value, node.operand(port.input).known_constant))
    body.graph.prepend(constants)
    return bool(constants)
