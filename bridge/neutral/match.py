"""Whether values of a graph are computed as others are that were made to compare them with."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import zip_longest

from bridge.neutral.builder import stored_short
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Invariant, Iteration, Sliced, Yield
from bridge.neutral.tensor import are_equal
from bridge.neutral.types import Type

ValuePair = tuple[Value | None, Value | None]
"""A made value and an existing value."""

Described = tuple[str, list[Value | None], Mapping[str, object]]
"""The compared parts of a node: an operator, its inputs, and its attributes."""


def as_written(node: Node) -> Described:
    """A node with its attributes, without types: the graph may know more of them."""
    plain = {k: v for k, v in node.attributes.items() if not isinstance(v, Type)}
    return node.op, node.inputs, plain


def _are_sizes(pattern: Value, there: Value) -> bool:
    """Whether two values hold the same sizes, by their symbols, whatever they are read of."""
    known = pattern.known_value
    same = known == there.known_value and pattern.type == there.type
    return same and known is not None and None not in known


class Match:
    """Compares values by the nodes that make them. `bound` maps a made value to the existing value.
    A value of `holes` fits any existing value. `nodes` are the nodes that were found alike."""

    def __init__(
        self,
        bound: Mapping[Value, Value],
        holes: Iterable[Value] = (),
        described: Callable[[Node], Described] = as_written,
    ) -> None:
        self.bound = dict(bound)
        self.nodes: dict[Node, Node] = {}
        self._holes = set(holes)
        self._described = described
        self._captured: dict[Value, Value] = {}

    def alike(self, *pairs: ValuePair) -> bool:
        """Whether both values of each pair are computed alike. If so, the found pairs are kept."""
        bound, nodes = self.bound.copy(), self.nodes.copy()
        todo = list(pairs)
        while todo:
            further = self._further(*todo.pop())
            if further is None:
                self.bound, self.nodes = bound, nodes
                return False
            todo += further
        return True

    def _further(self, pattern: Value | None, there: Value | None) -> list[ValuePair] | None:
        """The pairs that must be alike for two values to be; None if they are not."""
        if pattern is None or there is None:
            return [] if pattern is there else None
        pattern, there = (v.behind("Identity", outside=self._captured) for v in (pattern, there))
        if pattern in self.bound:
            return [] if self.bound[pattern] is there else None
        if pattern.constant is not None:
            return [] if are_equal(pattern.constant, there.constant) else None
        if there.constant is not None and (short := stored_short(pattern)) is not None:
            # A file stores this constant in few bits.
            return [] if are_equal(short, getattr(there.constant.source, "tensor", None)) else None
        if pattern in self._holes:
            self.bound[pattern] = there
            return []
        if _are_sizes(pattern, there):
            return []
        one, other = pattern.producer, there.producer
        if one is None or other is None or one.outputs.index(pattern) != other.outputs.index(there):
            return None
        if one in self.nodes:
            return [] if self.nodes[one] is other else None
        self.nodes[one] = other
        return self._of_nodes(one, other)

    def _of_nodes(self, pattern: Node, there: Node) -> list[ValuePair] | None:
        (op, inputs, attributes), (other, others, same) = map(self._described, (pattern, there))
        if op != other or attributes != same or len(pattern.bodies) != len(there.bodies):
            return None
        if not pattern.bodies:
            return list(zip_longest(inputs, others))
        heads = 1 if pattern.op == "If" else 2
        pairs = [(pattern.input(head), there.input(head)) for head in range(heads)]
        if heads > 1 and pairs[1][0] is None and known_of(pairs[1][1]).ints == (1,):
            pairs.pop()  # A Loop without a condition starts.
        for bodies in zip(pattern.bodies, there.bodies, strict=True):
            inside = self._of_bodies(pattern, there, *bodies)
            if inside is None:
                return None
            pairs += inside
        return pairs

    def _of_bodies(
        self, pattern: Node, there: Node, one: Body, other: Body
    ) -> list[ValuePair] | None:
        for node, body in ((pattern, one), (there, other)):
            self._captured.update(node.captures(body))
        ours, theirs = ([e for e in body.entries() if not isinstance(e[1], Invariant)]
                        for body in (one, other))  # fmt: skip
        exits, found = ({port: value for value, port in body.exits() if port != Yield(None)}
                        for body in (one, other))  # fmt: skip
        if len(ours) != len(theirs) or exits.keys() != found.keys():
            return None
        pairs: list[ValuePair] = [(value, found[port]) for port, value in exits.items()]
        for (inside, entry), (value, place) in zip(ours, theirs, strict=True):
            self.bound[inside] = value
            match entry, place:
                case Iteration(), Iteration():
                    continue
                case Carried(), Carried():
                    (again, exit), (back, same) = one.exit_of(entry), other.exit_of(place)
                    if exit != same:
                        return None
                    pairs.append((again, back))
                case Sliced(), Sliced():
                    if replace(entry, input=place.input) != place:
                        return None
                case _:
                    return None
            first, begin = entry.input, place.input
            pairs.append(
                (
                    None if first is None else pattern.inputs[first],
                    None if begin is None else there.inputs[begin],
                )
            )
        return pairs
