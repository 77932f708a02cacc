"""Parts of the forms of Loops for OpenVINO's GPU plugin."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Value
from bridge.neutral.ports import Carried, Condition, Sliced, Stacked, Yield
from bridge.neutral.types import STRING
from bridge.operators.branches import either

ENDLESS = 2**31 - 1
"""A trip count from which on a Loop has none: the plugin computes with 32 bits. No axis has
as many elements."""


def has_numbers(value: Value) -> bool:
    """Whether an output of a Loop is a tensor of numbers or booleans."""
    return value.element not in (None, STRING)


def is_plain(port: object) -> bool:
    """Whether a port reads or stacks all parts, each of size 1, forwards or backwards."""
    if not isinstance(port, Sliced | Stacked):
        return True
    ways = ((0, 1, -1), (-1, -1, 0))
    return port.part_size == 1 and (port.start, port.stride, port.end) in ways


def depend_on(b: Builder, body: Body, number: Value) -> None:
    """Each output of a body depends on the number of the iteration, a scalar, if it depends on no
    input: the plugin ends the process at a state that becomes a constant."""
    reached = {*body.graph.inputs, number}
    for node in body.graph.nodes:
        if not reached.isdisjoint(node.inputs):
            reached.update(node.outputs)
    for index, (value, exit) in enumerate(body.exits()):
        if value not in reached and value.element is not None and not isinstance(exit, Condition):
            body.graph.outputs[index] = b.where(number >= 0, value, b.like(0, value))


def initial_states(inputs: Sequence[Value | None], body: Body) -> dict[int, Value]:
    """The initial states, by output of the Loop."""
    found: dict[int, Value] = {}
    for port in body.inputs:
        if isinstance(port, Carried) and port.input is not None:
            exit, initial = body.outputs[port.output], inputs[port.input]
            # Of states that become one output, the first counts.
            if isinstance(exit, Yield) and exit.output is not None and initial is not None:
                found.setdefault(exit.output, initial)
    return found


def chosen(b: Builder, ran: Value, value: Value, initial: Value) -> Value:
    """The output of a Loop if it should have run, else the initial state."""
    (one,) = either(b, ran, [value, initial], lambda _, v: v[:1], lambda _, v: v[1:])
    return one


def with_zeros(b: Builder, outer: Value, axis: int) -> Value:
    """A tensor with a further part of zeros along an axis."""
    dims = [1 if at == axis else b.dim(outer, at) for at in range(len(outer.dims))]
    return b.concat(axis, outer, b.zeros(outer, *dims))
