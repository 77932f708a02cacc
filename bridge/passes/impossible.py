"""Nodes that cannot run with the shapes they get.

OpenVINO infers both branches of an If when it opens a model, and refuses one of which a branch
contradicts itself, though it may never be taken: the branch for another sample rate, say, once the
length of the input is fixed. Such a branch is pruned; its If goes the other way. A Loop whose body
fails gives what it gives without an iteration, unless it is known to run.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.builder import Builder
from bridge.neutral.graph import BRANCHES, Graph, Model, Node
from bridge.neutral.rewrite import Substitution
from bridge.operators.control.idle import surely_runs, what_went_in
from bridge.operators.validity import contradiction
from bridge.passes.context import Context
from bridge.passes.fold import infer_and_fold, inline_branch
from bridge.report import Report


def prune_impossible(model: Model, context: Context) -> None:
    """Prunes, in place, branches that fail whenever they are taken, and notes each in the report.

    Raises UnsupportedError with the nodes that fail elsewhere.
    """
    report = context.report
    count = len(report.pruned)
    findings = _graph(model.graph, "graph", report)
    if len(report.pruned) > count:
        infer_and_fold(model.graph)
    if findings:
        raise UnsupportedError(str(context.target), findings)


def refuse_impossible(model: Model, context: Context) -> None:
    """Raises UnsupportedError with the nodes that fail, in branches that are to be kept too:
    OpenVINO would not open the model."""
    findings = list(_failing(model.graph, "graph", ""))
    if findings:
        raise UnsupportedError(str(context.target), findings)


def _failing(graph: Graph, where: str, advice: str) -> Iterator[Unsupported]:
    for node in graph.nodes:
        here = f"{where} / {node!r}"
        if why := contradiction(node):
            yield Unsupported(node.op, here, f"{why}{advice}")
        for role, body in node.roles() if node.bodies else ():
            inside = _PRUNE if node.op == "If" else advice
            yield from _failing(body.graph, f"{here} / {role}", inside)


_PRUNE = "; without --keep-branches (keep_branches=True) its branch is pruned"


def _graph(graph: Graph, where: str, report: Report) -> list[Unsupported]:
    findings: list[Unsupported] = []
    substitution = Substitution()
    nodes: list[Node] = []
    for node in graph.nodes:
        substitution.apply(node)
        if node.op == "If":
            here = f"{where} / {node!r}"
            both = [
                _graph(body.graph, f"{here} / {branch}", report) for branch, body in node.roles()
            ]
            possible = [index for index in (0, 1) if not both[index]]
            if len(possible) == 1:
                gone = 1 - possible[0]
                report.pruned.append(f"{here}: its {BRANCHES[gone]} fails, {both[gone][0].why}")
                inline_branch(node, node.bodies[possible[0]], nodes, substitution)
                continue
            findings += [finding for each in both for finding in each]
        if node.op == "Loop":
            here = f"{where} / {node!r}"
            found = _graph(node.body.graph, f"{here} / body", report)
            made: list[Node] = []
            idle = None
            if found and not surely_runs(node, node.inputs[:2]):
                idle = what_went_in(Builder(made, node.name), node)
            if idle is not None:
                report.pruned.append(f"{here}: its body fails, {found[0].why}")
                nodes += made
                for old, new in zip(node.outputs, idle, strict=True):
                    substitution.replace(old, new)
                continue
            findings += found
        why = contradiction(node)
        if why:
            findings.append(Unsupported(node.op, f"{where} / {node!r}", why))
        nodes.append(node)
    graph.nodes = nodes
    substitution.finish(graph)
    return findings
