"""States whose first sizes OpenVINO takes for those of all iterations: it refuses a body that
contradicts itself with them, though no node may run so, and keeps the shape of a state that nothing
behind the Loop takes."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import infer_graph
from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.ports import Carried, Yield
from bridge.operators import Result
from bridge.quirks.opaque import undone
from bridge.quirks.openvino_cpu.initial_size_of_state import of_hidden_size
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_hidden_sizes(b: Builder, node: Node, place: Place) -> Result:
    """The sizes that change are hidden before such a Loop."""
    return of_hidden_size(b, node, place) if _leaves_none(node) or _fails_at_first(node) else None


def _leaves_none(node: Node) -> bool:
    """Whether a state of changing shape does not leave a Loop."""
    starts = zip(node.body.inputs, _starts(node), strict=True)
    return any(
        start is not None
        and isinstance(port, Carried)
        and node.body.outputs[port.output] == Yield(None)
        for port, start in starts
    )


def _fails_at_first(node: Node) -> bool:
    starts = _starts(node)
    if not any(starts):
        return False
    graph = clone_body(node.body).graph
    for value, start in zip(graph.inputs, starts, strict=True):
        value.type = start.type if start else value.type
    infer_graph(graph)
    return any(map(contradiction, graph.walk()))


def _starts(node: Node) -> list[Value | None]:
    """What each input of a body starts with, where that is known to have another type later."""
    found: list[Value | None] = []
    for state, port in node.body.entries():
        start = None
        if isinstance(port, Carried) and port.input is not None:
            start = node.inputs[port.input]
        same = start is None or start.rank != state.rank or start.shape == state.shape
        found.append(None if same else start)
    return found


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop whose body would fail with the initial size of a state that grows is refused, "
    "and a state that grows and that nothing behind the Loop takes keeps its first shape.",
    fires="At a state whose size changes, in a Loop whose body contradicts itself with the first "
    "size, or that does not leave the Loop.",
    safe="A remainder by 1 is 0; padded by 0, a value stays what it is.",
    cost="a Pad of nothing before the Loop for each such state",
    run=rewriting("Loop", by=of_hidden_sizes),
    undo=undone("bounds"),
)
