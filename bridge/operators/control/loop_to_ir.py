"""Loop for IR: Loop-5, or TensorIterator-1 where slices alone say how often the body runs.

ONNX stacks and slices along an axis that comes and goes, IR along one that stays; IR's conditions
and trip count are scalars, its body sees no condition, and TensorIterator's no iteration number.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.neutral.arrays import full
from bridge.neutral.builder import Builder, constant_value
from bridge.neutral.graph import Node
from bridge.neutral.ports import Carried, Condition
from bridge.neutral.tensor import Tensor
from bridge.operators import Result, expands
from bridge.operators.control.axes import set_axes
from bridge.operators.control.draft import (
    Draft,
    scalar,
    scalar_heads,
    trips_of_slices,
    turn_forwards,
)


def scalar_conditions(b: Builder, draft: Draft) -> None:
    """A condition that leaves the body is a scalar, or 1-D with one element."""
    graph = draft.body.graph
    for index, (value, exit) in enumerate(draft.body.exits()):
        if isinstance(exit, Condition) and value.rank not in (0, 1):
            graph.outputs[index] = scalar(draft.inside(b), value)
            draft.changed = True


def kept_axes(b: Builder, draft: Draft) -> None:
    """Slices and stacks keep their axis."""
    set_axes(b, draft, keepdims=True)


def condition_is_true(b: Builder, draft: Draft) -> None:
    """An iteration runs only where the condition holds: inside, it is the constant true."""
    body = draft.body
    found = body.take_entries(
        lambda _, port: (
            isinstance(port, Carried) and isinstance(body.outputs[port.output], Condition)
        )
    )
    for value, _ in found:
        shape = [d if isinstance(d, int) else 1 for d in value.shape or ()]
        tensor = Tensor.of(full(shape, True, what=f'the condition "{value.name}"'))
        known = constant_value(tensor)
        value.type, value.content = known.type, known.content
        constant = Node("Constant", [], [value], {"value": tensor}, (), value.name)
        body.graph.nodes.insert(0, constant)
        draft.changed = True


def counted_iterations(b: Builder, draft: Draft) -> None:
    """A TensorIterator's body knows not the number of the iteration: where it is asked for, the
    node is a Loop, which needs a trip count and reads forwards."""
    if draft.kind == "slices":
        draft.inputs[0] = trips_of_slices(b, draft.inputs, draft.body)
        turn_forwards(b, draft)
        draft.changed = True


STEPS: tuple[Callable[[Builder, Draft], None], ...] = (
    scalar_conditions,
    kept_axes,
    scalar_heads,
    condition_is_true,
    counted_iterations,
)
"""What is done to a Loop for IR, in this order; none undoes what another does."""


@expands("Loop", target="ir")
def loop_to_ir(b: Builder, node: Node) -> Result:
    """ONNX's Loop (1 to 25) and Scan (8 to 25) as IR has them; see the steps."""
    draft = Draft.of(node)
    for step in STEPS:
        step(b, draft)
    return draft.build(b) if draft.changed else None
