"""Removes idle parts of Loops: Loops without an iteration, states that never change, trip counts
that are never reached. OpenVINO computes wrong outputs for such Loops. It also reserves memory for
as many stacked values as the trip count."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node
from bridge.neutral.ports import Condition, outer_input
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.operators.control.endless import without_limit
from bridge.operators.control.idle import never_runs, what_went_in
from bridge.operators.control.unchanged import no_state
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold


def drop_idle_loops(model: Model, context: Context) -> bool:
    """Removes, in place, Loops that never run, states that never change, and trip counts that no
    Loop reaches before its condition ends it. New constants are folded."""
    if not Rewriter(model.graph).run(Pattern(_less, frozenset({"Loop"}), context.target)):
        return False
    infer_and_fold(model.graph)
    return True


def _less(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    if never_runs(node.inputs[:2]):
        return what_went_in(b, node)
    values = no_state(b, node)
    return without_limit(b, node) if values is None and _may_end(node) else values


def _may_end(node: Node) -> bool:
    """Whether the condition of a Loop may become false, and its body sees no trip count."""
    exits = node.body.exits()
    computed = any(isinstance(exit, Condition) and v.constant is None for v, exit in exits)
    return computed and not any(outer_input(port) == 0 for port in node.body.inputs)
