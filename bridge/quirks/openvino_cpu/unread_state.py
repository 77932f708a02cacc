"""A state that no iteration reads: the CPU plugin drops it, and with it what it was at first."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.ports import Carried, Yield
from bridge.operators import Result
from bridge.operators.control.draft import Draft
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def as_output(b: Builder, node: Node, place: Place) -> Result:
    """The state is an output of the body that leads nowhere, so that it stays."""
    body = node.body
    read = {value for inner in body.graph.nodes for value in inner.inputs}
    unread = [
        value
        for value, port in body.entries()
        if isinstance(port, Carried) and value not in read and value not in body.graph.outputs
    ]
    if not unread:
        return None
    draft = Draft.of(node)
    for value in unread:
        draft.body.add_exit(value, Yield(None))
    return draft.build(b)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A state that the body does not read is garbage where the Loop runs no iteration.",
    cost="one Result in the body",
    run=rewriting("Loop", by=as_output),
)
