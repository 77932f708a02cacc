"""A Loop that is known never to run: what OpenVINO gives for its states and stacks."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Stacked, Yield
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def what_went_in(b: Builder, node: Node, place: Place) -> Result:
    """The initial states, and stacks of nothing."""
    body = node.body
    if integers(node.trip_count) != (0,) and integers(node.condition) != (0,):
        return None
    results: list[Value | None] = [None] * len(node.outputs)
    for port in body.inputs:
        if isinstance(port, Carried) and port.input is not None:
            _, exit = body.exit_of(port)
            if isinstance(exit, Yield) and exit.output is not None:
                results[exit.output] = node.inputs[port.input]
    for value, exit in body.exits():
        if not isinstance(exit, Stacked) or value.element is None:
            continue
        if value.shape is None or not all(isinstance(d, int) for d in value.shape):
            return None
        shape = list(value.shape)
        if exit.keepdims:
            shape[exit.axis] = 0
        else:
            shape.insert(exit.axis % (len(shape) + 1), 0)
        results[exit.output] = b.filled(0, shape, value.element)
    return results if None not in results else None


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A Loop whose trip count or condition is known to be 0 or false gives vectors of "
    "nothing for its states.",
    cost="none: the Loop goes",
    run=rewriting("Loop", by=what_went_in),
)
