"""A name for each unknown size, so that equal shapes are recognised by their names.

Declared sizes of computed values are not used here: one name may stand for several sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference import infer, infer_graph
from bridge.neutral.inference.control import enter, enter_bodies
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried
from bridge.neutral.types import Dim, Interval, Shape, TensorType, Type
from bridge.operators.guarding import is_known_size
from bridge.vocabulary import has_trait, operator


class NamedSizes:
    """Inside the block, every unknown size of a graph has a name; afterwards it is inferred anew.
    Equal names are equal sizes, as long as both values are computed at once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._declared: dict[Value, Type] = {}
        self._numbers = count()
        self._most: dict[str, int] = {}
        self._shaped: dict[tuple[object, ...], str] = {}

    def declare(self, new: Value, old: Value) -> None:
        """Gives a value that replaces another the same declared type."""
        self._declared[new] = self._declared[old]

    def forget(self, nodes: Sequence[Node]) -> None:
        """Forgets the declared sizes of what nodes compute."""
        for node in nodes:
            for value in node.outputs:
                declared = self._declared.get(value)
                if isinstance(declared, TensorType):
                    self._declared[value] = TensorType(declared.element)

    def __enter__(self) -> NamedSizes:
        for value in self._graph.computed():
            self._declared[value] = value.declared
            if isinstance(value.declared, TensorType):
                value.declared = TensorType(value.declared.element)
        for value in self._graph.inputs:
            self._declared[value] = value.declared
            self._name(value)
        self._infer(self._graph)
        return self

    def __exit__(self, *_: object) -> None:
        for value, declared in self._declared.items():
            value.declared = declared
        for value in self._graph.inputs:
            value.type = value.declared
        infer_graph(self._graph)

    def _infer(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node.op == "Constant":
                continue
            if node.op == "Loop":
                enter_bodies(node)
                infer(node)
            for body in node.bodies:
                for value, port in body.entries():
                    if not isinstance(port, Carried):
                        enter(node, value, port)
                    self._name(value)
                self._infer(body.graph)
            if node.op != "Loop":
                infer(node)
            what = _what_shapes(node)
            for index, value in enumerate(node.outputs):
                self._name(value, None if what is None else (*what, index))

    def _name(self, value: Value, what: tuple[object, ...] | None = None) -> None:
        """Names the sizes of a value. Sizes that come from the same shapes get the same names."""
        if value.shape is not None and any(isinstance(dim, Interval) for dim in value.shape):
            dims = (self._named(dim, what, axis) for axis, dim in enumerate(value.shape))
            value.type = TensorType(value.element, tuple(dims))

    def _named(self, dim: Dim, what: tuple[object, ...] | None, axis: int) -> Dim:
        if not isinstance(dim, Interval):
            return dim
        name = f"#{next(self._numbers)}"
        if dim.high is not None:
            self._most[name] = dim.high
        return name if what is None else self._shaped.setdefault((*what, axis), name)

    def largest(self, one: Shape, other: Shape) -> dict[int, int | None] | None:
        """The larger size of each axis in which two shapes may differ, None for an axis without a
        bound. None as a whole if the shapes differ in rank."""
        if one is None or other is None or len(one) != len(other):
            return None
        found: dict[int, int | None] = {}
        for axis, dims in enumerate(zip(one, other, strict=True)):
            if dims[0] != dims[1] or not is_known_size(dims[0]):
                most = [dim if isinstance(dim, int) else self._most.get(str(dim)) for dim in dims]
                bounds = [size for size in most if size is not None]
                found[axis] = max(bounds) if len(bounds) == len(most) else None
        return found


_BY_SHAPES = frozenset({"elementwise", "indexing", "matmul", "nn", "reduction", "shape"})
"""Families of operators whose shapes follow from shapes, attributes, and inputs that shape."""


def _what_shapes(node: Node) -> tuple[object, ...] | None:
    """A key for the shapes of a node's outputs; None if data decide them, or it is not known."""
    row = operator(node.op)
    if row is None or row.family not in _BY_SHAPES:
        return None
    inputs: list[object] = []
    for place, value in enumerate(node.inputs):
        known = known_of(value).parts
        if value is not None and (
            value.shape is None or (place in row.shaped_by and (known is None or None in known))
        ):
            return None
        inputs.append(None if value is None else (value.shape, known))
    return node.op, repr(sorted(node.attributes.items())), tuple(inputs)


def are_equal(one: Shape, other: Shape) -> bool:
    """Whether two shapes are surely equal, by the names of sizes."""
    return one is not None and other is not None and one == other and all(map(is_known_size, one))


def same_shape(one: Value, other: Value) -> bool:
    """Whether two values surely have one shape: by their sizes, or since both are computed element
    by element of one value, whatever its rank is."""
    return are_equal(one.shape, other.shape) or _shaper(one) is _shaper(other)


def _shaper(value: Value) -> Value:
    """The value of the same shape that one is computed of, as far back as can be told."""
    node: Node | None = value.producer
    while node is not None and node.inputs and (first := node.inputs[0]) is not None:
        if node.op != "Identity" and not has_trait(node.op, "by_element"):
            if not has_trait(node.op, "broadcasts"):
                break
            shapers = {_shaper(each) for each in node.inputs if each is not None and each.rank != 0}
            if len(shapers) != 1:
                break
            first = shapers.pop()
        value, node = first, first.producer
    return value
