"""Nodes that cannot run with the shapes they get.

OpenVINO infers both branches of an If when it opens a model, and refuses one of which a branch
contradicts itself, though it may never be taken: the branch for another sample rate, say, once the
length of the input is fixed. Such a branch is pruned; its If goes the other way.
"""

from __future__ import annotations

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.graph import BRANCHES, Graph, Model, Node
from bridge.neutral.rewrite import Substitution
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


def _graph(graph: Graph, where: str, report: Report) -> list[Unsupported]:
    findings: list[Unsupported] = []
    substitution = Substitution()
    nodes: list[Node] = []
    for node in graph.nodes:
        substitution.apply(node)
        here = f"{where} / {node!r}"
        if node.op == "If":
            found = [
                _graph(body.graph, f"{here} / {branch}", report) for branch, body in node.roles()
            ]
            possible = [index for index in (0, 1) if not found[index]]
            if len(possible) == 1:
                gone = 1 - possible[0]
                report.pruned.append(f"{here}: its {BRANCHES[gone]} fails, {found[gone][0].why}")
                inline_branch(node, node.bodies[possible[0]], nodes, substitution)
                continue
            findings += [finding for each in found for finding in each]
        for body in node.bodies if node.op != "If" else ():
            findings += _graph(body.graph, f"{here} / body", report)
        why = contradiction(node)
        if why:
            findings.append(Unsupported(node.op, here, why))
        nodes.append(node)
    graph.nodes = nodes
    substitution.finish(graph)
    return findings
