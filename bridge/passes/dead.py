"""Removes what no output depends on."""

from __future__ import annotations

from bridge.neutral.graph import Body, Graph, Invariant, Node, Value
from bridge.passes.rewrite import drop_unused_inputs
from bridge.vocabulary import operators


def remove_dead_code(graph: Graph, trim: bool = False) -> None:
    """Removes nodes without a user, and captured inputs that no body uses, innermost first; with
    `trim` also the last outputs of a node, where they are optional and unused."""
    used: set[Value] = set(graph.outputs)
    alive: list[Node] = []
    for node in reversed(graph.nodes):
        if not any(value in used for value in node.outputs):
            continue
        for body in node.bodies:
            remove_dead_code(body.graph, trim)
            _drop_captures(body)
        if trim:
            _trim_outputs(node, used)
        if node.bodies:
            drop_unused_inputs(node, 1 if node.op == "If" else 2)
        used.update(value for value in node.inputs if value is not None)
        alive.append(node)
    alive.reverse()
    graph.nodes = alive


def _trim_outputs(node: Node, used: set[Value]) -> None:
    operator = operators().get(node.op)
    declared = operator.outputs if operator is not None else ()
    count = min(len(node.outputs), len(declared))
    if count < len(node.outputs):
        return
    while count > 1 and node.outputs[count - 1] not in used and declared[count - 1].endswith("?"):
        count -= 1
    del node.outputs[count:]


def _drop_captures(body: Body) -> None:
    used = {v for n in body.graph.nodes for v in n.inputs if v is not None}
    used.update(body.graph.outputs)
    kept = [
        (value, port)
        for value, port in zip(body.graph.inputs, body.inputs, strict=True)
        if value in used or not isinstance(port, Invariant)
    ]
    body.graph.inputs = [value for value, _ in kept]
    body.inputs = [port for _, port in kept]
