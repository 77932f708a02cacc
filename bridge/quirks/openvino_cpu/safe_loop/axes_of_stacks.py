"""A stack is along its first axis, or no axis in front of its own may have size 0.

The CPU plugin divides by the product of the sizes in front of the axis, and crashes if it is 0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.ports import Stacked
from bridge.neutral.types import low
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[int]:
    """The outputs of the body with such an axis in front of the axis of the stack."""
    return [
        index
        for index, (value, exit) in enumerate(draft.body.exits())
        if isinstance(exit, Stacked)
        and value.shape
        and not all(low(size) for size in value.shape[: exit.axis % len(value.shape)])
    ]


def give(draft: Draft, found: list[int]) -> None:
    """The stack is along the first axis. Behind the Loop, a Transpose moves the axis back."""
    body = draft.body
    for index in found:
        value, exit = body.graph.outputs[index], body.outputs[index]
        assert isinstance(exit, Stacked)
        axis = exit.axis % len(value.dims)
        body.outputs[index] = replace(exit, axis=0)
        body.graph.outputs[index] = _in_front(draft.loop.inside(draft.b), value, axis)
        draft.loop.after(exit.output, partial(_into_place, axis))


def _in_front(b: Builder, value: Value, axis: int) -> Value:
    """The value with an axis as its first."""
    if value.dims[axis] == 1:
        return b.unsqueeze(b.squeeze(value, axis), 0)
    others = [other for other in range(len(value.dims)) if other != axis]
    return b.op("Transpose", value, [axis, *others])


def _into_place(axis: int, b: Builder, stacked: Value) -> Value:
    """The stack with its first axis moved to that place."""
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(stacked.dims))]
    return b.op("Transpose", stacked, order)


QUIRK = Clause(
    holds="A stack is along its first axis, or no axis in front may have size 0.",
    lacks=lacks,
    give=give,
    retypes=True,
    releases="2026.4",
    symptom="A stack of open size crashes if an axis in front of its own has size 0.",
    fires="At a stack along an axis, if an axis in front of it may have size 0.",
    safe="The axis of the stack is moved to the front inside the body, and back behind the Loop.",
    cost="a Transpose of each stack along an axis behind one that may have size 0",
)
