"""Ranks that a file declares though data decides them.

Exporters declare what they saw in one example. Where an If's branches differ in rank and its
condition depends on data, the next example may have another rank, and so it may where data decide
how long the vector is that a Reshape makes a shape of; what is declared of such a value, and of
what is computed from it, is forgotten. Where the condition depends on shapes alone, one of the
branches is for a model of other inputs, and what is declared says which.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference import infer
from bridge.neutral.inference.control import enter
from bridge.neutral.ports import Carried, Yield, outer_input
from bridge.neutral.types import TensorType, is_static
from bridge.vocabulary import operator

TARGETS = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
"""Operators whose output has the shape that this input holds."""


class DataDependence:
    """Answers whether data, and not shapes alone, decide what a value holds."""

    def __init__(self, graph: Graph) -> None:
        self._inputs = set(graph.inputs)
        self._entries: dict[Value, tuple[Node, Body, int]] = {}
        for node in graph.walk():
            for body in node.bodies:
                for index, value in enumerate(body.graph.inputs):
                    self._entries[value] = (node, body, index)

    def of(self, value: Value, content: bool = True) -> bool:
        """Whether the elements of a value, or without `content` its shape, depend on the elements
        of the model's inputs, or on chance."""
        todo: list[tuple[Value, bool]] = [(value, content)]
        seen = set(todo)
        while todo:
            value, content = todo.pop()
            node = value.producer
            if content and (value in self._inputs or (node is not None and _is_random(node))):
                return True
            for source in self._sources(value, content):
                if source not in seen:
                    seen.add(source)
                    todo.append(source)
        return False

    def _sources(self, value: Value, content: bool) -> Iterable[tuple[Value, bool]]:
        """What the elements, or the shape, of a value come from; True: from elements."""
        if value.constant is not None or (not content and is_static(value.shape)):
            return
        if value in self._entries:
            yield from self._entry(*self._entries[value], content)
            return
        node = value.producer
        if node is None:
            return
        if node.bodies:
            yield from self._output(node, node.outputs.index(value), content)
            return
        shaping = _shaping(node)
        for place, taken in enumerate(node.inputs):
            if taken is not None and node.op in ("Shape", "Size"):
                yield taken, False
            elif taken is not None:
                yield taken, content or place in shaping

    def _entry(
        self, node: Node, body: Body, index: int, content: bool
    ) -> Iterable[tuple[Value, bool]]:
        port = body.inputs[index]
        place = outer_input(port)
        outer = None if place is None else node.inputs[place]
        if outer is not None:
            yield outer, content
        if isinstance(port, Carried):
            yield body.graph.outputs[port.output], content
            yield from self._heads(node)

    def _output(self, node: Node, index: int, content: bool) -> Iterable[tuple[Value, bool]]:
        yield from self._heads(node)
        for body in node.bodies:
            for value, port in body.exits():
                if getattr(port, "output", None) == index:
                    yield value, content
            for port_in in body.inputs:
                if isinstance(port_in, Carried):
                    yield from self._entry(node, body, body.inputs.index(port_in), content)

    def _heads(self, node: Node) -> Iterable[tuple[Value, bool]]:
        for value in node.inputs[: 1 if node.op == "If" else 2]:
            if value is not None:
                yield value, True


def _is_random(node: Node) -> bool:
    row = operator(node.op)
    return row is not None and row.family == "random"


def _shaping(node: Node) -> Iterable[int]:
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
    _Forgetting(DataDependence(graph)).graph(graph)


class _Forgetting:
    """One walk, with the values whose rank is open to data."""

    def __init__(self, dependence: DataDependence) -> None:
        self.dependence = dependence
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
        return target is not None and self.dependence.of(target, content=False)

    def _forget(self, node: Node, values: Iterable[Value]) -> None:
        """Forgets what is declared of outputs, but for those whose rank is known without."""
        declared = {v: v.declared for v in values if isinstance(v.declared, TensorType)}
        for value, type in declared.items():
            value.declared = TensorType(type.element)
        infer(node)
        for value, type in declared.items():
            if value.rank is None:
                self.open.add(value)
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
                    self.open.add(value)
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
                len(ranks) > 1 and self.dependence.of(_required(node.condition))
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
            self.open.update(grown)
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
