"""Stacks of Loops of which nothing is taken where no iteration runs: there is nothing in them."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Stacked
from bridge.neutral.signs import is_not_negative
from bridge.passes.recompose.inverses import named_after
from bridge.passes.recompose.uses import Uses

FAR = 1 << 30
"""An end behind every part: no stack has so many."""


def whole_stack(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Slice of a stack that ends far behind it, or at its start where the Loop did not run, is
    the stack."""
    stack = node.inputs[0]
    loop = stack.producer if stack is not None else None
    if stack is None or loop is None or loop.op != "Loop" or stack.rank is None:
        return None
    start, _, axes, step = (integers(node.input(i)) for i in range(1, 5))
    if start != (0,) or axes is None or len(axes) != 1 or step not in (None, (1,)):
        return None
    along = {
        exit.axis % stack.rank
        for exit in loop.body.outputs
        if isinstance(exit, Stacked) and loop.outputs[exit.output] is stack
    }
    if along != {axes[0] % stack.rank} or not _is_end(node.inputs[2], loop):
        return None
    return named_after(stack, node, uses)


def _is_end(end: Value | None, loop: Node) -> bool:
    """Whether a value is a far end, or 0 where the Loop runs no iteration."""
    choice = end.producer if end is not None else None
    if choice is None or choice.op != "Where" or integers(choice.inputs[2]) != (0,):
        return False
    far = integers(choice.inputs[1])
    return far is not None and far[0] >= FAR and _asks(choice.inputs[0], loop)


def _asks(test: Value | None, loop: Node) -> bool:
    """Whether a test fails in no case but that in which the Loop runs no iteration."""
    trips, condition = loop.inputs[:2]
    if _is_scalar_of(test, condition):
        return True
    made = test.producer if test is not None else None
    if made is not None and made.op == "And":
        return all(_asks(part, loop) for part in made.inputs)
    if made is not None and made.op == "Greater" and integers(made.inputs[1]) == (0,):
        return _is_scalar_of(made.inputs[0], trips) and is_not_negative(trips)
    return False


def _is_scalar_of(value: Value | None, whole: Value | None) -> bool:
    """Whether a value is another one of one element, perhaps reshaped."""
    made = value.producer if value is not None else None
    reshaped = made is not None and made.op == "Reshape" and made.inputs[0] is whole
    return whole is not None and (value is whole or reshaped)
