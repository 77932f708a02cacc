"""What Loops have for nothing: no iteration at all, states that stay what they were at first, trip
counts that are never reached. On the way to IR the quirks of Loops see to it."""

from __future__ import annotations

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.ports import Condition, outer_input
from bridge.neutral.rewrite import Substitution
from bridge.operators.control.endless import without_limit
from bridge.operators.control.idle import never_runs, what_went_in
from bridge.operators.control.unchanged import no_state
from bridge.passes.context import Context


def drop_idle_loops(model: Model, context: Context) -> None:
    """Takes out, in place, Loops that never run, states that never change, and trip counts that no
    Loop reaches before its condition ends it."""
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
    made = no_state(b, node)
    return without_limit(b, node) if made is None and _may_end(node) else made


def _may_end(node: Node) -> bool:
    """Whether the condition of a Loop may become false, and its body sees no trip count."""
    exits = node.body.exits()
    computed = any(isinstance(exit, Condition) and v.constant is None for v, exit in exits)
    return computed and not any(outer_input(port) == 0 for port in node.body.inputs)
