"""Loop for IR: Loop-5, or TensorIterator-1 if slices alone determine the number of iterations.

ONNX removes the axis of slices and adds the axis of stacks, but IR keeps the axis. IR's conditions
and trip count are scalars, and its body does not read a condition. The body of a TensorIterator has
no iteration number.
"""

from collections.abc import Callable

from bridge.neutral.arrays import full
from bridge.neutral.builder import constant_node
from bridge.neutral.ports import Carried, Condition
from bridge.neutral.tensor import Tensor
from bridge.operators import Builder, Node, Result, legalizes
from bridge.operators.control.axes import set_axes
from bridge.operators.control.loop_builder import (
    LoopBuilder,
    scalar,
    scalar_heads,
    trips_of_slices,
    turn_forwards,
)


def scalar_conditions(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes a condition from the body a scalar or 1-D with one element."""
    graph = loop_builder.body.graph
    for index, (value, exit) in enumerate(loop_builder.body.exits()):
        if isinstance(exit, Condition) and value.rank not in (0, 1):
            graph.outputs[index] = scalar(loop_builder.inside(b), value)


def kept_axes(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes slices and stacks keep their axis."""
    set_axes(b, loop_builder, keepdims=True)


def condition_is_true(b: Builder, loop_builder: LoopBuilder) -> None:
    """Replaces the condition inside the body by the constant true, because an iteration runs only
    if the condition holds."""
    body = loop_builder.body
    found = body.take_entries(
        lambda _, port: (
            isinstance(port, Carried) and isinstance(body.outputs[port.output], Condition)
        )
    )
    for value, _ in found:
        shape = [d if isinstance(d, int) else 1 for d in value.shape or ()]
        tensor = Tensor.of(full(shape, True, what=f'the condition "{value.name}"'))
        body.graph.prepend([constant_node(value, tensor)])


def counted_iterations(b: Builder, loop_builder: LoopBuilder) -> None:
    """Makes a Loop of a node with a body that reads the iteration number, because a TensorIterator
    does not have it. A Loop needs a trip count and reads forwards."""
    if loop_builder.kind == "slices":
        loop_builder.inputs[0] = trips_of_slices(b, loop_builder.inputs, loop_builder.body)
        turn_forwards(b, loop_builder)


STEPS: tuple[Callable[[Builder, LoopBuilder], None], ...] = (
    scalar_conditions,
    kept_axes,
    scalar_heads,
    condition_is_true,
    counted_iterations,
)
"""The steps from a Loop to IR, in this order. No step reverts another one."""


@legalizes("Loop", target="ir")
def loop_to_ir(b: Builder, node: Node) -> Result:
    """Converts ONNX's Loop (1 to 25) and Scan (8 to 25) to IR; see the steps."""
    loop_builder = LoopBuilder.of(node)
    for step in STEPS:
        step(b, loop_builder)
    return loop_builder.build(b) if loop_builder.changed else None
