"""Stacks along an axis before which there may be nothing: the CPU plugin divides by the product of
the sizes before the axis, where it does not know them beforehand, and ends the process."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Stacked
from bridge.neutral.types import low
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.quirk import Place, Quirk, rewriting


def stacked_in_front(b: Builder, node: Node, place: Place) -> Result:
    """Such stacks along the first axis, and moved into place behind the Loop."""
    loop_builder = LoopBuilder.of(node)
    body = loop_builder.body
    for index, (value, exit) in enumerate(body.exits()):
        if not isinstance(exit, Stacked) or not value.shape:
            continue
        axis = exit.axis % len(value.shape)
        if all(low(size) for size in value.shape[:axis]):
            continue
        body.outputs[index] = replace(exit, axis=0)
        body.graph.outputs[index] = _in_front(loop_builder.inside(b), value, axis)
        loop_builder.after(exit.output, partial(_into_place, axis))
    return loop_builder.build(b) if loop_builder.changed else None


def _in_front(b: Builder, value: Value, axis: int) -> Value:
    """The value with an axis as its first."""
    if value.dims[axis] == 1:
        return b.unsqueeze(b.squeeze(value, axis), 0)
    others = [other for other in range(len(value.dims)) if other != axis]
    return b.op("Transpose", value, [axis, *others])


def _into_place(axis: int, b: Builder, stacked: Value) -> Value:
    """The stack with its first axis as that one."""
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(stacked.dims))]
    return b.op("Transpose", stacked, order)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A stack of open size along an axis behind one of size 0 ends the process.",
    fires="At a stack along an axis with one in front whose size may be 0.",
    safe="The axis of the stack is moved to the front inside the body, and back behind the Loop.",
    cost="a Transpose of each stack that is not along the first axis, where a size before that may "
    "be 0",
    run=rewriting("Loop", by=stacked_in_front),
)
