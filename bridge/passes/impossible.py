"""Nodes that cannot run with the shapes they get.

OpenVINO infers both branches of an If when it opens a model. It refuses the model if a branch
contradicts itself, even if the branch never runs. (An example is the branch for another sample
rate, once the length of the input is fixed.) Such a branch is pruned; its If goes the other way. A
Loop whose body fails gives its outputs without an iteration, unless it surely runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import BRANCHES, Graph, Model, Node
from bridge.neutral.inference.constraints import contradiction, contradictions
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.operators.control.idle import surely_runs, what_went_in
from bridge.passes.applies import applies, between_formats, both, option, rewrites, without
from bridge.passes.assumptions import note_pruned
from bridge.passes.context import Context
from bridge.passes.fold import FOLD, infer_and_fold
from bridge.passes.legality import found
from bridge.report import PrunedBranch, Report


@applies(both(rewrites, without("keep_branches")))
def prune_impossible(model: Model, context: Context) -> bool:
    """Prunes, in place, branches that fail whenever they are taken, and notes each in the report.

    Raises UnsupportedError with the nodes that fail elsewhere.
    """
    if not context.ask(contradictions, model.graph):
        return False
    pruning = _Pruning(context.report)
    changed = Rewriter(model.graph).run(Pattern(pruning.pruned))
    if changed:
        infer_and_fold(model.graph)
    findings = pruning.failing[model.graph]
    if findings:
        raise UnsupportedError(str(context.target), findings)
    return changed


@applies(both(between_formats, option("keep_branches")))
def refuse_impossible(model: Model, context: Context) -> bool:
    """Raises UnsupportedError with the nodes that fail, also in branches that the user keeps,
    because OpenVINO would not open the model. Other nodes stay as they are."""
    failing = context.ask(contradictions, model.graph)

    def faults(node: Node) -> Iterable[str]:
        return (failing[node],) if node in failing else ()

    if failing:
        findings = list(found(model.graph, faults))
        outside = set(found(model.graph, faults, into_ifs=False))
        findings = [f if f in outside else replace(f, why=f.why + _PRUNE) for f in findings]
        raise UnsupportedError(str(context.target), findings)
    return False


_PRUNE = "; without `keep_branches=True` its branch is pruned"


class _Pruning:
    """`failing` are the nodes of each graph that fail and are not pruned."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.failing: defaultdict[Graph, list[Unsupported]] = defaultdict(list)

    def pruned(self, b: Builder, node: Node, rewriter: Rewriter) -> Result:
        """The replacement of an If or a Loop whose body fails."""
        inside = [self.failing.pop(body.graph, []) for body in node.bodies]
        if any(inside):
            results = (self._if if node.op == "If" else self._loop)(b, node, rewriter, inside)
            if results is not None:
                return results
        failing = self.failing[rewriter.graph]
        failing += [finding for findings in inside for finding in findings]
        if why := contradiction(node):
            failing.append(Unsupported(node.op, rewriter.path(node), why))
        return None

    def _if(self, b: Builder, node: Node, rewriter: Rewriter, inside: Findings) -> Result:
        """The branch that does not fail, if there is one."""
        gone = next(index for index, findings in enumerate(inside) if findings)
        if inside[1 - gone]:
            return None
        why = f"fails, {inside[gone][0].why}"
        line = PrunedBranch(rewriter.path(node), BRANCHES[gone], why)
        note_pruned(rewriter, node, gone, line, self.report)
        return rewriter.inline(b, node, node.bodies[1 - gone], FOLD)

    def _loop(self, b: Builder, node: Node, rewriter: Rewriter, inside: Findings) -> Result:
        """The outputs of the Loop without an iteration, if it may have none."""
        idle = None if surely_runs(node, node.inputs[:2]) else what_went_in(b, node)
        if idle is not None:
            why = f"its body fails, {inside[0][0].why}"
            self.report.pruned.append(f"{rewriter.path(node)}: {why}")
        return idle


Findings = list[list[Unsupported]]
"""The nodes that fail, for each body of a node."""
