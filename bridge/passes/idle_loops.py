"""What Loops do for nothing: no iteration at all, or states that stay what they were at first. On
the way to IR the quirks of Loops see to it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.rewrite import Substitution
from bridge.operators.control.idle import never_runs, what_went_in
from bridge.operators.control.unchanged import no_state
from bridge.passes.context import Context


def drop_idle_loops(model: Model, context: Context) -> None:
    """Takes out, in place, Loops that never run, and states that never change."""
    _graph(model.graph, context.target)


def _graph(graph: Graph, target: Target) -> None:
    substitution = Substitution()
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        substitution.apply(node)
        for body in node.bodies:
            _graph(body.graph, target)
        made = _less(Builder(graph.nodes, node.name, target), node) if node.op == "Loop" else None
        if made is None:
            graph.nodes.append(node)
            continue
        for old, new in zip(node.outputs, made, strict=True):
            if new is not old:
                substitution.replace(old, new)
    substitution.finish(graph)


def _less(b: Builder, node: Node) -> list[Value] | None:
    if never_runs(node.inputs[:2]):
        return what_went_in(b, node)
    return no_state(b, node)
