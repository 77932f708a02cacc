"""Forgets declared ranks if data decide the real rank.

Exporters declare the ranks that they saw in one example, but the next example may have another.
This happens if an If's branches differ in rank and its condition depends on data. It also happens
if data decide the length of the vector that gives a Reshape its shape. The declared ranks of such
values, and of values computed from them, are forgotten. If the condition depends on shapes alone,
one of the branches is for a model with other inputs, and the declared ranks tell which one.
"""

from collections.abc import Iterable

from bridge.neutral.dataflow import Facts
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.control import enter
from bridge.neutral.ports import Carried
from bridge.neutral.types import TensorType, is_static
from bridge.passes.deciding import Decided, Decider, Deciding

TARGETS = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
"""Operators whose output has the shape that this input holds."""


DATA = frozenset({Decider("data")})


class DependsOnData(Deciding):
    """Whether data, and not only shapes, decide the elements or the shape of a value."""

    def outside(self, value: Value) -> Decided:
        """The shapes of inputs are no data."""
        return Decided(DATA)

    def settled(self, value: Value, fact: Decided) -> Decided:
        """A known shape depends on no data."""
        return Decided(fact.elements) if fact.shape and is_static(value.shape) else fact


def open_target(node: Node) -> Value | None:
    """The vector, of unknown length, that holds the shape of a node's output."""
    place = TARGETS.get(node.op)
    target = None if place is None else node.input(place)
    return None if target is None or target.rank != 1 or is_static(target.shape) else target


def forget_ranks_of_data(graph: Graph) -> None:
    """Forgets, in place, the declared ranks of values whose rank data decide."""
    _Forgetting(Facts(DependsOnData(), graph)).graph(graph)


class _Forgetting:
    """One walk, with the values whose rank is open to data."""

    def __init__(self, depends: Facts[Decided]) -> None:
        self.depends = depends
        self.open: set[Value] = set()

    def graph(self, graph: Graph) -> None:
        """Walks one graph; it is known which of its inputs have open ranks."""
        for node in graph.nodes:
            if node.op == "If":
                self._if(node)
            elif node.bodies:
                self._loop(node)
            elif not self.open.isdisjoint(node.inputs) or self._opens(node):
                self._forget(node, node.outputs)

    def _opens(self, node: Node) -> bool:
        """Whether data decide the length of the vector that holds the shape of a node's output."""
        target = open_target(node)
        return target is not None and bool(self.depends.of(target).shape)

    def _open(self, value: Value) -> None:
        """Notes that data decide the rank of a value."""
        self.open.add(value)
        self.depends.learn(value, Decided(self.depends.of(value).elements, DATA))

    def _forget(self, node: Node, values: Iterable[Value]) -> None:
        """Forgets the declared ranks of outputs, except the ranks that are known otherwise."""
        declared = {v: v.declared for v in values if isinstance(v.declared, TensorType)}
        for value, type in declared.items():
            value.declared = TensorType(type.element)
        infer(node)
        for value, type in declared.items():
            if value.rank is None:
                self._open(value)
            else:
                value.declared = type
        infer(node)

    def _enter(self, node: Node, body: Body) -> None:
        for value, port in body.entries():
            if node.outer(port) in self.open and isinstance(value.declared, TensorType):
                value.declared = TensorType(value.declared.element)
                enter(node, value, port)
                if value.rank is None:
                    self._open(value)
        self.graph(body.graph)

    def _if(self, node: Node) -> None:
        for body in node.bodies:
            self._enter(node, body)
        forgotten: list[Value] = []
        for index, value in enumerate(node.outputs):
            held = [body.given(index) for body in node.bodies]
            ranks = {inner.rank for inner in held if inner.rank is not None}
            if any(inner in self.open for inner in held) or (
                len(ranks) > 1 and self.depends.of(node.operand(0)).elements
            ):
                forgotten.append(value)
        if forgotten:
            self._forget(node, forgotten)

    def _loop(self, node: Node) -> None:
        body = node.body
        for _ in range(len(body.inputs) + 1):
            self._enter(node, body)
            grown = [
                value
                for value, port in body.entries()
                if isinstance(port, Carried)
                and value not in self.open
                and (body.exit_of(port)[0] in self.open or changes_rank(node, value, port))
            ]
            if not grown:
                break
            for value in grown:
                value.type = value.declared = TensorType(value.element)
                self._open(value)
        outer = [getattr(port, "output", None) for value, port in body.exits()
                 if value in self.open]  # fmt: skip
        forgotten = [value for index, value in enumerate(node.outputs) if index in outer]
        if forgotten:
            self._forget(node, forgotten)


def changes_rank(loop: Node, value: Value, port: Carried) -> bool:
    """Whether a state has other ranks after an iteration than before."""
    initial = loop.outer(port)
    return initial is not None and initial.rank is not None and value.rank is None
