"""Whether a part of a graph is the same as another one that was made to compare it with."""

from __future__ import annotations

from itertools import zip_longest

from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Carried, Invariant, Iteration, Stacked, Yield
from bridge.neutral.tensor import are_equal
from bridge.neutral.types import Type


class Match:
    """Compares values of a pattern with values of a graph by what makes them. `bound` says which
    value of the graph stands for one of the pattern; one of `holes` may be any."""

    def __init__(self, holes: list[Value], bound: dict[Value, Value] | None = None) -> None:
        self.holes = set(holes)
        self.bound: dict[Value, Value] = dict(bound or {})
        self.nodes: dict[Node, Node] = {}
        self._captured: dict[Value, Value] = {}

    def values(self, pattern: Value | None, value: Value | None) -> bool:
        """Whether a value is what the pattern has there."""
        if pattern is None or value is None:
            return pattern is value
        pattern, value = self._outside(pattern), self._outside(value)
        known = self.bound.get(pattern)
        if known is not None:
            return known is value
        if pattern in self.holes:
            self.bound[pattern] = value
            return True
        if pattern.constant is not None:
            return are_equal(pattern.constant, value.constant)
        made, found = pattern.producer, value.producer
        if made is None or found is None or not self._nodes(made, found):
            return False
        return made.outputs.index(pattern) == found.outputs.index(value)

    def _outside(self, value: Value) -> Value:
        """What a captured value is outside, and a copy is of, as far as nodes have been met."""
        while True:
            maker = value.producer
            if value in self._captured:
                value = self._captured[value]
            elif maker is not None and maker.op == "Identity" and maker.inputs[0] is not None:
                value = maker.inputs[0]
            else:
                return value

    def _nodes(self, pattern: Node, node: Node) -> bool:
        known = self.nodes.get(pattern)
        if known is not None:
            return known is node
        if pattern.op != node.op or len(pattern.bodies) != len(node.bodies):
            return False
        if _plain(pattern) != _plain(node):
            return False
        self.nodes[pattern] = node
        if not pattern.bodies:
            inputs = zip_longest(pattern.inputs, node.inputs)
            return all(self.values(a, b) for a, b in inputs)
        heads = 1 if pattern.op == "If" else 2
        return all(self.values(pattern.input(i), node.input(i)) for i in range(heads)) and all(
            self._bodies(pattern, a, node, b)
            for a, b in zip(pattern.bodies, node.bodies, strict=True)
        )

    def _bodies(self, pattern: Node, a: Body, node: Node, b: Body) -> bool:
        for owner, body in ((pattern, a), (node, b)):
            for value, port in body.entries():
                outer = owner.inputs[port.input] if isinstance(port, Invariant) else None
                if outer is not None:
                    self._captured[value] = outer
        if not self._entries(pattern, a, node, b):
            return False
        ours = {_place(exit): value for value, exit in a.exits()}
        theirs = {_place(exit): value for value, exit in b.exits()}
        return ours.keys() == theirs.keys() and all(
            self.values(value, theirs[place]) for place, value in ours.items()
        )

    def _entries(self, pattern: Node, a: Body, node: Node, b: Body) -> bool:
        ours = [(v, p) for v, p in a.entries() if not isinstance(p, Invariant)]
        theirs = [(v, p) for v, p in b.entries() if not isinstance(p, Invariant)]
        if len(ours) != len(theirs):
            return False
        for (inside, port), (value, other) in zip(ours, theirs, strict=True):
            if isinstance(port, Carried) and isinstance(other, Carried):
                first = None if port.input is None else pattern.inputs[port.input]
                begin = None if other.input is None else node.inputs[other.input]
                if not self.values(first, begin) or _place(a.outputs[port.output]) != _place(
                    b.outputs[other.output]
                ):
                    return False
            elif not (isinstance(port, Iteration) and isinstance(other, Iteration)):
                return False
            self.bound[inside] = value
        return True


def _place(exit: object) -> object:
    """Which output of its node an exit of a body is."""
    return (type(exit), exit.output) if isinstance(exit, Yield | Stacked) else type(exit)


def _plain(node: Node) -> dict[str, object]:
    """The attributes of a node but types, of which more may be known."""
    return {k: v for k, v in node.attributes.items() if not isinstance(v, Type)}
