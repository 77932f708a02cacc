"""Conditions of Loops that are computed and always hold, so that an engine does not know it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Model
from bridge.neutral.ports import Condition, Iteration
from bridge.operators.control.draft import true_always
from bridge.passes.context import Context


def know_conditions(model: Model, context: Context) -> None:
    """Makes true, in place, the condition that the number of the iteration is not negative. A Loop
    without a trip count keeps it: it would have no end that can be seen."""
    for node in list(model.graph.walk()):
        if node.op == "Loop" and node.trip_count is not None:
            _know(node.body)


def _know(body: Body) -> None:
    numbers = {value for value, port in body.entries() if isinstance(port, Iteration)}
    for index, (value, exit) in enumerate(body.exits()):
        made = value.producer
        if not isinstance(exit, Condition) or made is None or made.op != "GreaterOrEqual":
            continue
        if made.inputs[0] in numbers and integers(made.inputs[1]) == (0,):
            body.graph.outputs[index] = true_always(Builder(body.graph.nodes))
