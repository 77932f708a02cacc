"""A Loop under construction: steps change the builder, and the given node stays the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bridge.neutral.captures import drop_unused_inputs
from bridge.neutral.graph import Body, loop_kind
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Iteration, Sliced, Stacked
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import I64, TensorType
from bridge.operators import Builder, Node, Refused, Value

Finish = Callable[[Builder, Value], Value]
"""A change of an output behind the Loop."""


@dataclass(eq=False)
class LoopBuilder:
    """The inputs and the body of a new Loop, and the changes of its outputs behind it. Steps may
    change all of them."""

    node: Node
    inputs: list[Value | None]
    body: Body
    finish: dict[int, list[Finish]] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> LoopBuilder:
        """A builder with the same Loop as the node."""
        return cls(node, _with_heads(node), node.body.copy())

    @property
    def changed(self) -> bool:
        """Whether the inputs, the ports or the ends of the body differ from the node's."""
        return _ends(self.inputs, self.body) != _ends(_with_heads(self.node), self.node.body)

    @property
    def trip_count(self) -> Value | None:
        """The maximum number of iterations."""
        return self.inputs[0]

    @property
    def condition(self) -> Value | None:
        """The condition for the first iteration."""
        return self.inputs[1]

    @property
    def kind(self) -> str:
        """The kind of the loop; see `loop_kind`."""
        return loop_kind(Node("Loop", self.inputs, [], bodies=(self.body,)))

    def operand(self, index: int) -> Value:
        """Input `index`; Refused if it is absent."""
        return Node("Loop", self.inputs, []).operand(index)

    def inside(self, b: Builder) -> Builder:
        """A builder of nodes at the end of the body."""
        return Builder(self.body.graph.nodes, self.node.name, b.target)

    def after(self, output: int, finish: Finish) -> None:
        """Adds `finish` to the changes of an output behind the Loop, as the last change."""
        self.finish.setdefault(output, []).append(finish)

    def outer(self, value: Value | None) -> int:
        """The index of a new input of the node."""
        self.inputs.append(value)
        return len(self.inputs) - 1

    def initial(self, port: Carried) -> Value | None:
        """The initial value of a state; None for an absent condition."""
        return None if port.input is None else self.inputs[port.input]

    def drop_unused_inputs(self) -> None:
        """Removes the inputs that no port uses any more."""
        node = Node("Loop", self.inputs, [], bodies=(self.body,))
        drop_unused_inputs(node)
        self.inputs = node.inputs

    def make(self, b: Builder, further: int = 0) -> list[Value]:
        """The outputs of the new Loop, and `further` outputs more. An output without a change
        behind the Loop has its type from the given node."""
        node = self.node
        made = b.node(
            "Loop", self.inputs, len(node.outputs) + further, {}, (self.body,), extras=node.extras
        )
        for index, (new, old) in enumerate(zip(made.outputs, node.outputs, strict=False)):
            if index not in self.finish:
                new.type = new.declared = old.type
        return made.outputs

    def build(self, b: Builder) -> list[Value]:
        """The outputs of the new Loop, with the changes behind it."""
        return self.finished(b, self.make(b))

    def finished(self, b: Builder, outputs: Sequence[Value]) -> list[Value]:
        """The outputs after the changes behind the Loop."""
        results = list(outputs)
        for index, steps in self.finish.items():
            for finish in steps:
                results[index] = finish(b, results[index])
        return results


def _ends(inputs: list[Value | None], body: Body) -> tuple[object, ...]:
    """The parts of a Loop that steps change: all except the nodes inside."""
    return inputs, body.inputs, body.outputs, body.graph.inputs, body.graph.outputs


def _with_heads(node: Node) -> list[Value | None]:
    """The inputs of a Loop; the first two are its trip count and its condition."""
    return [*node.inputs, *[None] * (2 - len(node.inputs))]


def scalar(b: Builder, value: Value) -> Value:
    """A value of one element as a scalar. A constant stays a constant with the same name."""
    return value if value.rank == 0 else b.reshape(value)


def scalar_heads(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes the trip count and the first condition scalars."""
    for index, value in enumerate(loop_builder.inputs[:2]):
        if value is not None:
            loop_builder.inputs[index] = scalar(b, value)


def constant_condition(b: Builder, holds: bool = True) -> Value:
    """A known condition with a name, because a value without a name gets another number the next
    time."""
    return b.tensor(Tensor.of(np.array(holds)), ["always" if holds else "never"])


def iteration_number(body: Body) -> Value:
    """The number of the iteration inside the body: i64, a scalar."""
    for value, port in body.entries():
        if isinstance(port, Iteration):
            return value
    # It is the first Parameter, so that it keeps its number when constants move into the body and
    # other Parameters disappear.
    value = Value(TensorType(I64, ()), ["iteration"])
    body.add_entry(value, Iteration(), first=True)
    return value


def trips_of_slices(b: Builder, inputs: list[Value | None], body: Body) -> Value:
    """The number of parts of the first sliced input: i64, a scalar. It is a constant if the number
    is known."""
    for port in body.inputs:
        if isinstance(port, Sliced):
            with b:
                trips = _parts(b, inputs[port.input], port)
            known = known_of(trips).ints
            return trips if known is None else b.constant(known[0])
    raise Refused("it has neither a trip count, nor a condition, nor a sliced input to count")


def _parts(b: Builder, outer: Value | None, port: Sliced) -> Value:
    size = b.op("Gather", b.op("Shape", outer), port.axis, 0)
    first, last = (port.start, port.end) if port.stride > 0 else (port.end, port.start)
    length = _position(b, last, size) - _position(b, first, size) + 1
    step = abs(port.stride)
    # IR runs length / |stride| iterations, because only whole parts count.
    return length if step == 1 else length / step


def _position(b: Builder, at: int, size: Value) -> Value:
    return b.constant(at) if at >= 0 else size + at


def reversed_along(axis: int, b: Builder, value: Value) -> Value:
    """The value in reverse order along an axis."""
    return b.op("Slice", value, *(b.constant([n]) for n in (-1, -(1 << 30), axis, -1)))


def turn_forwards(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes a Loop read and stack forwards, as IR's Loop requires. Inputs are reversed before the
    Loop, and outputs behind it."""
    body = loop_builder.body
    for index, port in enumerate(body.inputs):
        if isinstance(port, Sliced) and port.are_backwards:
            outer = reversed_along(port.axis, b, loop_builder.operand(port.input))
            place = loop_builder.outer(outer)
            body.inputs[index] = Sliced(place, port.axis, part_size=port.part_size)
    loop_builder.drop_unused_inputs()
    for index, exit in enumerate(body.outputs):
        if isinstance(exit, Stacked) and exit.are_backwards:
            body.outputs[index] = Stacked(exit.output, exit.axis, part_size=exit.part_size)
            loop_builder.after(exit.output, partial(reversed_along, exit.axis))


def is_positive(value: Value) -> bool:
    """Whether a value is known to be one positive number, or true."""
    known = known_of(value).ints
    return known is not None and len(known) == 1 and known[0] > 0
