"""Ranks that a file declares though data decides them.

Exporters declare what they saw in one example. Where an If's branches differ in rank and its
condition depends on data, the next example may have another rank, and so it may where data decide
how long the vector is that a Reshape makes a shape of; what is declared of such a value, and of
what is computed from it, is forgotten. Where the condition depends on shapes alone, one of the
branches is for a model of other inputs, and what is declared says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Flag, auto

from bridge.neutral.dataflow import Facts, Forward, Now, Updates
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.control import enter
from bridge.neutral.ports import Carried, Condition, InputPort, Yield, outer_input
from bridge.neutral.types import TensorType, is_static
from bridge.vocabulary import operator

TARGETS = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
"""Operators whose output has the shape that this input holds."""


class Depends(Flag):
    """What of a value depends on the elements of the model's inputs, or on chance."""

    NOTHING = 0
    ELEMENTS = auto()
    SHAPE = auto()


class DependsOnData(Forward[Depends]):
    """Whether data, and not shapes alone, decide what a value holds, and its shape."""

    bottom = iteration = Depends.NOTHING

    def join(self, one: Depends, other: Depends) -> Depends:
        """What of either depends on data."""
        return one | other

    def outside(self, value: Value) -> Depends:
        """The shapes of inputs are no data."""
        return Depends.ELEMENTS

    def settled(self, value: Value, fact: Depends) -> Depends:
        """A shape that is known depends on nothing."""
        return fact & ~Depends.SHAPE if is_static(value.shape) else fact

    def transfer(self, node: Node, facts: Sequence[Depends | None]) -> list[Depends]:
        """Elements come from elements; shapes from shapes, and from elements that shape."""
        if node.op in ("Shape", "Size"):
            shaped = facts[0] is not None and Depends.SHAPE in facts[0]
            return [Depends.ELEMENTS | Depends.SHAPE if shaped else Depends.NOTHING]
        found = Depends.ELEMENTS if is_random(node) else Depends.NOTHING
        shapers = shaping(node)
        for place, fact in enumerate(facts):
            found |= fact or Depends.NOTHING
            if fact is not None and Depends.ELEMENTS in fact and place in shapers:
                found |= Depends.SHAPE
        return [found] * len(node.outputs)

    def entry(
        self, node: Node, body: Body, value: Value, port: InputPort, now: Now[Depends]
    ) -> Depends:
        """How often a Loop runs decides its states."""
        fact = super().entry(node, body, value, port, now)
        return fact | _decided(node, now) if isinstance(port, Carried) else fact

    def leave(self, node: Node, now: Now[Depends]) -> Updates[Depends]:
        """What decides about a node decides what comes out."""
        yield from super().leave(node, now)
        decided = _decided(node, now)
        yield from ((value, decided) for value in node.outputs)


def _decided(node: Node, now: Now[Depends]) -> Depends:
    """What data decide of what a node with bodies gives, since they decide its condition."""
    if any(Depends.ELEMENTS in now(head) for head in heads(node)):
        return Depends.ELEMENTS | Depends.SHAPE
    return Depends.NOTHING


def heads(node: Node) -> list[Value]:
    """What decides which body of a node runs, and how often."""
    found = list(node.inputs[: 1 if node.op == "If" else 2])
    found += [v for body in node.bodies for v, p in body.exits() if isinstance(p, Condition)]
    return [head for head in found if head is not None]


def is_random(node: Node) -> bool:
    """Whether a node gives other numbers each time."""
    row = operator(node.op)
    return row is not None and row.family == "random"


def shaping(node: Node) -> Iterable[int]:
    """The inputs whose elements decide the shapes of a node's outputs."""
    row = operator(node.op)
    return range(len(node.inputs)) if row is None else row.shaped_by


def open_target(node: Node) -> Value | None:
    """The vector, of a length that is not known, that holds the shape of what a node gives."""
    place = TARGETS.get(node.op)
    target = None if place is None else node.input(place)
    return None if target is None or target.rank != 1 or is_static(target.shape) else target


def forget_ranks_of_data(graph: Graph) -> None:
    """Forgets, in place, the ranks that are declared of values whose rank data decide."""
    _Forgetting(Facts(DependsOnData(), graph)).graph(graph)


class _Forgetting:
    """One walk, with the values whose rank is open to data."""

    def __init__(self, depends: Facts[Depends]) -> None:
        self.depends = depends
        self.open: set[Value] = set()

    def graph(self, graph: Graph) -> None:
        """Walks one graph; what is open of its inputs is known."""
        for node in graph.nodes:
            if node.op == "If":
                self._if(node)
            elif node.bodies:
                self._loop(node)
            elif not self.open.isdisjoint(node.inputs) or self._opens(node):
                self._forget(node, node.outputs)

    def _opens(self, node: Node) -> bool:
        """Whether data decide how long the vector is that holds the shape of what a node gives."""
        target = open_target(node)
        return target is not None and Depends.SHAPE in self.depends.of(target)

    def _open(self, value: Value) -> None:
        """Notes that data decide the rank of a value."""
        self.open.add(value)
        self.depends.learn(value, self.depends.of(value) | Depends.SHAPE)

    def _forget(self, node: Node, values: Iterable[Value]) -> None:
        """Forgets what is declared of outputs, but for those whose rank is known without."""
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
            place = outer_input(port)
            outer = None if place is None else node.inputs[place]
            if outer in self.open and isinstance(value.declared, TensorType):
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
            held = [inner for body in node.bodies for inner, port in body.exits()
                    if isinstance(port, Yield) and port.output == index]  # fmt: skip
            ranks = {inner.rank for inner in held if inner.rank is not None}
            if any(inner in self.open for inner in held) or (
                len(ranks) > 1 and Depends.ELEMENTS in self.depends.of(_required(node.condition))
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
    initial = None if port.input is None else loop.inputs[port.input]
    return initial is not None and initial.rank is not None and value.rank is None


def _required(value: Value | None) -> Value:
    assert value is not None
    return value
