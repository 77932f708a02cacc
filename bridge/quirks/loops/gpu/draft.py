"""A Loop on its way to another form: the steps that several forms share."""

from dataclasses import replace

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Invariant,
    Iteration,
    Sliced,
    Stacked,
)
from bridge.neutral.types import I64, TensorType
from bridge.operators.bodies import either
from bridge.operators.control.loop_builder import LoopBuilder, is_positive, scalar

ENDLESS = 2**31 - 1
"""The largest trip count. A Loop with more has no limit, because the plugin computes with 32
bits. No axis has as many elements."""


class LoopDraft(LoopBuilder):
    """A copy of a Loop, to be changed. `head` and `tail` make nodes at the start and the end of the
    body; the nodes of `head` get there by `begin`."""

    def __init__(self, b: Builder, node: Node) -> None:
        inputs = [*node.inputs, *[None] * (2 - len(node.inputs))]
        super().__init__(node, inputs, clone_body(node.body))
        self.head = Builder([], node.name, b.target)
        self.tail = self.inside(b)

    def begin(self) -> None:
        """Puts the nodes of `head` at the start of the body."""
        self.body.graph.prepend(self.head.nodes)

    def loop(self, b: Builder, count: int) -> list[Value]:
        """The `count` outputs of the new Loop."""
        loop = b.node("Loop", self.inputs, count, {}, (self.body,), self.node.name, None)
        return list(loop.outputs)

    def entry(self, type: TensorType, outer: Value, port: Invariant | Carried | Sliced) -> Value:
        """A new input of the body, which takes `outer`."""
        value = Value(type)
        self.body.add_entry(value, replace(port, input=self.outer(outer)))
        return value

    def invariant(self, outer: Value) -> Value:
        """A value from outside, inside the body."""
        return self.entry(outer.tensor, outer, Invariant(0))

    def replace_entry(self, value: Value, by: Value) -> None:
        """Computes the value of a body input, of one element, from another value in the body. The
        input itself is removed later."""
        shape = self.head.constant([1] * (value.rank or 0), I64)
        self.head.node("Reshape", [by, shape], [value])

    def without_head(self, port: InputPort) -> InputPort:
        """A port that takes the trip count or the first condition from a further input: these two
        inputs become absent."""
        if isinstance(port, Iteration) or port.input not in (0, 1):
            return port
        return replace(port, input=self.outer(self.inputs[port.input]))

    def first_condition(self, b: Builder) -> Value | None:
        """The first condition, a scalar; None if it is true."""
        first = self.condition
        return None if first is None or is_positive(first) else scalar(b, first)

    def forwards(self, b: Builder, port: Sliced) -> Value:
        """The tensor that a port slices, so that its slices are taken forwards."""
        outer = self.operand(port.input)
        return b.flip(outer, port.axis) if port.stride < 0 else outer

    def depend_on(self, number: Value) -> None:
        """Each output of the body depends on the number of the iteration, a scalar, if it depends
        on no input: the plugin ends the process at a state that becomes a constant."""
        reached = {*self.body.graph.inputs, number}
        for node in self.body.graph.nodes:
            if not reached.isdisjoint(node.inputs):
                reached.update(node.outputs)
        for index, (value, exit) in enumerate(self.body.exits()):
            if value not in reached and not isinstance(exit, Condition):
                self.tie(index, number)

    def tie(self, index: int, number: Value) -> None:
        """Makes an output of the body depend on the number of the iteration."""
        value, b = self.body.graph.outputs[index], self.tail
        if value.element is not None:
            self.body.graph.outputs[index] = b.where(number >= 0, value, b.like(0, value))


def chosen(b: Builder, ran: Value, value: Value, initial: Value) -> Value:
    """The output of a Loop if it should have run, else the initial state."""
    (one,) = either(b, ran, [value, initial], lambda _, v: v[:1], lambda _, v: v[1:])
    return one


def with_zeros(b: Builder, outer: Value, axis: int) -> Value:
    """A tensor with a further part of zeros along an axis."""
    dims = [1 if at == axis else b.dim(outer, at) for at in range(len(outer.dims))]
    return b.concat(axis, outer, b.zeros(outer, *dims))


def in_order(b: Builder, stack: Value, port: Stacked) -> Value:
    """A stack of parts in the order of iterations, in the order that the port wants."""
    return b.flip(stack, port.axis) if port.stride < 0 else stack
