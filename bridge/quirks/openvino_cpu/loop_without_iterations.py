"""A Loop that is known never to run: what OpenVINO gives for its states and stacks."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node
from bridge.operators import Result
from bridge.operators.control.idle import never_runs, what_went_in
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold
from bridge.quirks.quirk import Place, Quirk, rewriting


def without_loop(b: Builder, node: Node, place: Place) -> Result:
    """The initial states, and stacks of nothing."""
    return what_went_in(b, node) if never_runs(node.inputs[:2]) else None


def without_loops(graph: Graph, context: Context) -> bool:
    """Takes all such Loops away, in place. What behind them has no elements becomes constant."""
    if not any(node.op == "Loop" and never_runs(node.inputs[:2]) for node in graph.walk()):
        return False
    rewriting("Loop", by=without_loop)(graph, context)
    infer_and_fold(graph)
    return True


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop whose trip count or condition is known to be 0 or false gives vectors of "
    "nothing for its states.",
    fires="At a Loop whose trip count is the constant 0, or whose condition is the constant false.",
    safe="A Loop without iterations gives its initial states, and stacks without parts.",
    cost="none: the Loop goes",
    run=without_loops,
)
