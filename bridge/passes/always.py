"""Conditions of Loops that always hold, some computed, so that an engine does not know it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Model, Value
from bridge.neutral.ports import Condition, Iteration
from bridge.operators.control.loop_builder import true_always
from bridge.passes.context import Context


def know_conditions(model: Model, context: Context) -> None:
    """Makes true, in place, the condition that the number of the iteration is not negative, and
    gives all that are true one name. A Loop without a trip count keeps it: it would have no end
    that can be seen."""
    for node in list(model.graph.walk()):
        if node.op == "Loop" and node.trip_count is not None:
            _know(node.body)


def _know(body: Body) -> None:
    numbers = {value for value, port in body.entries() if isinstance(port, Iteration)}
    for index, (value, exit) in enumerate(body.exits()):
        if isinstance(exit, Condition) and _always(value, numbers):
            body.graph.outputs[index] = true_always(Builder(body.graph.nodes))


def _always(value: Value, numbers: set[Value]) -> bool:
    """Whether a condition is true whatever happens; `numbers` are those of the iteration."""
    made = value.producer
    if made is None:
        return False
    if made.op == "GreaterOrEqual":
        return made.inputs[0] in numbers and integers(made.inputs[1]) == (0,)
    return made.op == "Constant" and integers(value) == (1,)
