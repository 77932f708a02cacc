"""Conditions of Loops that are computed and always hold, so that an engine does not know it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Body, Model
from bridge.neutral.ports import Condition, Iteration
from bridge.passes.context import Context

NAME = "always"
"""What the constant is called: numbers of the nameless are other ones the next time."""


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
            always = Builder(body.graph.nodes).constant(True)
            always.names = [NAME]
            body.graph.outputs[index] = always
