"""Sequences that Loops extend and whose elements are only used joined. A tensor of the elements
joined so far replaces such a sequence."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference import infer_graph
from bridge.neutral.ports import Carried, Invariant, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import ANY, ContainerType, Dim, Element, SequenceType, TensorType

OPS = frozenset({"SequenceEmpty", "SequenceConstruct", "SequenceInsert", "ConcatFromSequence"})


@dataclass(eq=False)
class Family:
    """Sequences that become each other: the values, and the nodes that make and join them.
    `carried` tells whether one is a state of a Loop, `plain` whether no other node uses them."""

    values: set[Value] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)
    carried: bool = False
    plain: bool = True

    def joined(self) -> Joined | None:
        """The family as one joined tensor; None if it cannot be one."""
        if not self.plain or not self.carried:
            return None
        types = [value.type for node in self.nodes for value in _items(node)]
        axes = {n.attributes["axis"] for n in self.nodes if n.op == "ConcatFromSequence"}
        shapes = [t.shape for t in types if isinstance(t, TensorType) and t.shape]
        elements = {t.element for t in types if isinstance(t, TensorType)}
        if not axes or not shapes or len(shapes) != len(types) or len(elements) != 1:
            return None
        element, rank = elements.pop(), len(shapes[0])
        places = {axis + rank if axis < 0 else axis for axis in axes}
        if element is None or element.kind == "string" or len(places) != 1:
            return None
        axis = places.pop()
        lines = {(*shape[:axis], ANY, *shape[axis + 1 :]) for shape in shapes}
        dims = lines.pop()
        sizes = (dim for place, dim in enumerate(dims) if place != axis)
        if lines or not 0 <= axis < rank or not all(isinstance(n, int) and n > 0 for n in sizes):
            return None
        return Joined(axis, element, dims)


@dataclass(frozen=True)
class Joined:
    """A sequence as its elements joined along an axis. Their other sizes are known."""

    axis: int
    element: Element
    dims: tuple[Dim, ...]

    def empty(self, b: Builder) -> Value:
        """The empty sequence, as an empty tensor."""
        shape = [dim if isinstance(dim, int) else 0 for dim in self.dims]
        return b.filled(0, shape, self.element)


def join_extended(graph: Graph) -> None:
    """Makes, in place, such sequences tensors."""
    if not any(node.op == "ConcatFromSequence" for node in graph.walk()):
        return
    joined_of: dict[Node, Joined] = {}
    for family in Families(graph).all():
        joined = family.joined()
        if joined is not None:
            joined_of.update(dict.fromkeys(family.nodes, joined))
            for value in family.values:
                value.type = value.declared = TensorType(joined.element, joined.dims)
                # The file's facts about the name are about an element.
                value.names = [f"{name}.joined" for name in value.names]
    if joined_of:
        Rewriter(graph).run(Pattern(partial(_rewritten, joined_of), OPS))
        infer_graph(graph)


def _rewritten(joined_of: dict[Node, Joined], b: Builder, node: Node, rewriter: Rewriter) -> Result:
    joined = joined_of.get(node)
    if joined is None:
        return None
    if node.op == "SequenceEmpty":
        return joined.empty(b)
    if node.op == "ConcatFromSequence":
        return b.op("Identity", node.inputs[0])
    return b.op("Concat", *node.operands, axis=joined.axis)


def _items(node: Node) -> list[Value]:
    """The tensors that a node puts into a sequence."""
    start = {"SequenceConstruct": 0, "SequenceInsert": 1}.get(node.op)
    return [] if start is None else [value for value in node.inputs[start:] if value is not None]


def _takes_whole(node: Node) -> bool:
    """Whether a node works on all elements joined: it has no position, and makes no axis."""
    if node.op == "SequenceInsert":
        return node.input(2) is None
    return node.op in OPS and not node.attributes.get("new_axis")


class Families:
    """The families of a graph and of all nested graphs."""

    def __init__(self, graph: Graph) -> None:
        self._of: dict[Value, Family] = {}
        for value in (*graph.inputs, *graph.outputs):
            self.spoil(value)
        for node in graph.walk():
            if node.bodies:
                self._through(node)
            elif node.op == "Identity":
                self.unite(*node.inputs, *node.outputs)
            elif _takes_whole(node):
                family = self.unite(*node.inputs, *node.outputs)
                if family is not None:
                    family.nodes.append(node)
            else:
                for each in (*node.inputs, *node.outputs):
                    self.spoil(each)

    def all(self) -> list[Family]:
        """Each family once."""
        return list(dict.fromkeys(self._of.values()))

    def unite(self, *values: Value | None) -> Family | None:
        """Makes the sequences among the values one family; None if there are none."""
        families: dict[Family, None] = {}
        for value in values:
            if value is not None and isinstance(value.type, ContainerType):
                if value not in self._of:
                    self._of[value] = Family({value}, plain=isinstance(value.type, SequenceType))
                families[self._of[value]] = None
        if not families:
            return None
        # The larger one takes the smaller, so that a value moves seldom.
        whole, *others = sorted(families, key=lambda family: -len(family.values))
        for other in others:
            whole.values |= other.values
            whole.nodes += other.nodes
            whole.carried |= other.carried
            whole.plain &= other.plain
            self._of.update(dict.fromkeys(other.values, whole))
        return whole

    def spoil(self, value: Value | None) -> None:
        """Notes another use of a value."""
        family = self.unite(value)
        if family is not None:
            family.plain = False

    def _through(self, node: Node) -> None:
        """Unites the inputs of bodies, and their outputs, with the outer values."""
        for body in node.bodies:
            for value, port in body.entries():
                if isinstance(port, Invariant):
                    self.unite(node.inputs[port.input], value)
                elif isinstance(port, Carried):
                    family = self.unite(node.outer(port), value, body.exit_of(port)[0])
                    if family is not None:
                        family.carried = True
                else:
                    self.spoil(value)
            for value, exit in body.exits():
                if not isinstance(exit, Yield):
                    self.spoil(value)
                elif exit.output is not None:
                    self.unite(value, node.outputs[exit.output])
