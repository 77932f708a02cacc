"""States that no iteration reads: OpenVINO drops them, and with them what they start with."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.ports import Carried, Yield
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.quirk import Place, Quirk, rewriting


def kept_by_result(b: Builder, node: Node, place: Place) -> Result:
    """Each such state is an output that leads nowhere, so that it stays."""
    body = node.body
    read = {value for inner in body.graph.nodes for value in inner.inputs}
    read.update(value for value, exit in body.exits() if exit == Yield(None))
    unread = [
        value
        for value, port in body.entries()
        if isinstance(port, Carried) and value not in read
        if body.graph.outputs[port.output] is not value
    ]
    if not unread:
        return None
    loop_builder = LoopBuilder.of(node)
    for value in unread:
        loop_builder.body.add_exit(value, Yield(None))
    return loop_builder.build(b)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A state that nothing in the body reads is garbage after no iteration.",
    fires="At a Loop with such a state, unless the state stays as it is.",
    safe="An output of the body that leads nowhere is read by nobody.",
    cost="one Result in the body for each such state",
    run=rewriting("Loop", by=kept_by_result),
)
