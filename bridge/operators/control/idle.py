"""Loops without an iteration: how to recognise them, and their outputs."""

from collections.abc import Sequence

from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Stacked, Yield
from bridge.neutral.types import Shape, is_static, low
from bridge.operators import Builder, Node, Value


def never_runs(heads: Sequence[Value | None]) -> bool:
    """Whether a Loop with this trip count and condition is known to run no iteration."""
    return any(known_of(head).ints == (0,) for head in heads)


def surely_runs(node: Node, heads: Sequence[Value | None]) -> bool:
    """Whether a Loop is known to run at least once. `heads` are its trip count and condition."""
    for head in heads:
        known = known_of(head).ints
        if head is not None and (known is None or len(known) != 1 or known[0] <= 0):
            return False
    return all(low(dim) > 0 for _, dim in node.slices())


def initial_states(node: Node) -> dict[int, Value]:
    """The initial states that become outputs of a Loop without an iteration, by index of the
    output."""
    exits = ((node.body.exit_of(port)[1], initial) for _, port, initial in node.states())
    return {
        exit.output: initial
        for exit, initial in exits
        if isinstance(exit, Yield) and exit.output is not None
    }


def shape_of_nothing(output: Value, axis: int | None) -> Shape:
    """The shape of an output of a Loop without an iteration. `axis` is the axis of a stack, or None
    for another output. Unknown sizes are 0, as in onnxruntime."""
    if output.shape is None:
        return None
    shape = [dim if isinstance(dim, int) else 0 for dim in output.shape]
    if axis is not None:
        shape[axis] = 0
    return tuple(shape)


def what_went_in(b: Builder, node: Node) -> list[Value] | None:
    """The outputs of a Loop without an iteration: its initial states and empty stacks. None if the
    rank of a stack is unknown."""
    results: dict[int, Value] = initial_states(node)
    for exit in node.body.outputs:
        if isinstance(exit, Stacked):
            output = node.outputs[exit.output]
            shape = shape_of_nothing(output, exit.axis)
            if output.element is None or not is_static(shape):
                return None
            results[exit.output] = b.filled(0, shape, output.element)
    outputs = range(len(node.outputs))
    return [results[i] for i in outputs] if all(i in results for i in outputs) else None
