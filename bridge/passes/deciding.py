"""The deciders of a value's elements and of its shape: inputs, random numbers, variables."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bridge.neutral.dataflow import Forward, Now, Updates
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.computed import is_random
from bridge.neutral.ports import Carried, Condition, InputPort
from bridge.neutral.types import is_static
from bridge.vocabulary import has_trait, operator


class Decider(NamedTuple):
    """An input, or chance or a variable; and whether its shape decides, or its elements do."""

    name: str
    is_shape: bool = False

    def __str__(self) -> str:
        return f"the shape of {self.name}" if self.is_shape else self.name


Sources = frozenset[Decider]

NONE: Sources = frozenset()


class Decided(NamedTuple):
    """The deciders of a value's elements, and the deciders of its shape."""

    elements: Sources = NONE
    shape: Sources = NONE


_NOTHING = Decided()


class Deciding(Forward[Decided]):
    """The deciders of values; an analysis sets the deciders of inputs."""

    bottom = iteration = _NOTHING

    def join(self, one: Decided, other: Decided) -> Decided:
        """The deciders of both."""
        if one == other:
            return one
        return Decided(one.elements | other.elements, one.shape | other.shape)

    def transfer(self, node: Node, facts: Sequence[Decided | None]) -> list[Decided]:
        """Elements come from elements; shapes from shapes, and from elements that shape."""
        known = [fact or _NOTHING for fact in facts]
        if has_trait(node.op, "reads_shape"):
            shape = known[0].shape
            return [Decided(shape, NONE if is_static(node.outputs[0].shape) else shape)]
        elements = _varying(node).union(*(fact.elements for fact in known))
        shape = NONE.union(*(fact.shape for fact in known))
        shape = shape.union(*(known[place].elements for place in shaping(node) if known[place:]))
        return [Decided(elements, shape)] * len(node.outputs)

    def entry(
        self, node: Node, body: Body, value: Value, port: InputPort, now: Now[Decided]
    ) -> Decided:
        """The deciders of a Loop's number of iterations also decide its states."""
        fact = super().entry(node, body, value, port, now)
        return self.join(fact, _head(node, now)) if isinstance(port, Carried) else fact

    def leave(self, node: Node, now: Now[Decided]) -> Updates[Decided]:
        """The deciders of a node decide its outputs."""
        yield from super().leave(node, now)
        decided = _head(node, now)
        yield from ((value, decided) for value in node.outputs)


def _varying(node: Node) -> Sources:
    """The deciders of a node's output elements, beside its inputs."""
    if node.op == "ReadValue":
        return frozenset({Decider("a variable")})
    return frozenset({Decider("chance")}) if is_random(node) else NONE


def _head(node: Node, now: Now[Decided]) -> Decided:
    """The deciders of which body of a node runs, and how often."""
    deciding = NONE.union(*(now(head).elements for head in heads(node)))
    return Decided(deciding, deciding)


def heads(node: Node) -> list[Value]:
    """The inputs that decide which body of a node runs, and how often."""
    found = list(node.inputs[: 1 if node.op == "If" else 2])
    found += [v for body in node.bodies for v, p in body.exits() if isinstance(p, Condition)]
    return [head for head in found if head is not None]


def shaping(node: Node) -> Iterable[int]:
    """The inputs whose elements decide the shapes of a node's outputs."""
    row = operator(node.op)
    return range(len(node.inputs)) if row is None else row.shaped_by
