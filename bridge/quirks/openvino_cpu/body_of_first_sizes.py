"""A body that contradicts itself with the sizes that its states start with: OpenVINO infers it with
these first, and refuses the model, though no node may run with them."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import infer_graph
from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.ports import Carried
from bridge.operators import Result
from bridge.quirks.opaque import hides, undone
from bridge.quirks.openvino_cpu.initial_size_of_state import of_hidden_size
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_hidden_sizes(b: Builder, node: Node, place: Place) -> Result:
    """The sizes that change are hidden before a Loop whose body fails with the first of them."""
    return of_hidden_size(b, node, place) if _fails_at_first(node) else None


def _fails_at_first(node: Node) -> bool:
    starts = [_start(node, value, port) for value, port in node.body.entries()]
    if not any(starts):
        return False
    graph = clone_body(node.body).graph
    for value, start in zip(graph.inputs, starts, strict=True):
        value.type = start.type if start else value.type
    infer_graph(graph)
    return any(map(contradiction, graph.walk()))


def _start(node: Node, state: Value, port: object) -> Value | None:
    """What a state starts with, where that is known to have another type."""
    start = None
    if isinstance(port, Carried) and port.input is not None:
        start = node.inputs[port.input]
    if start is None or start.rank != state.rank or start.shape == state.shape:
        return None
    hidden = start.producer is not None and hides(start.producer, "bounds")
    return None if hidden else start


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop whose body would fail with the initial size of a state that grows is refused.",
    fires="At a state whose size changes, in a Loop whose body contradicts itself with the first "
    "size.",
    safe="A remainder by 1 is 0; padded by 0, a value stays what it is.",
    cost="a Pad of nothing before the Loop for each such state",
    run=rewriting("Loop", by=of_hidden_sizes),
    undo=undone("bounds"),
)
