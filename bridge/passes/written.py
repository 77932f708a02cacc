"""What is about to be written is looked over, whoever made it: a file that no engine opens is worse
than a refusal."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.graph import Graph, Model
from bridge.neutral.verify import verify
from bridge.operators.validity import contradiction, impropriety
from bridge.passes.context import Context


def look_over(model: Model, context: Context) -> None:
    """Raises VerificationError where the graph breaks a rule of the neutral graph, and
    UnsupportedError with the nodes that the target's engines would refuse.

    What comes from the same format is what it was. In branches of Ifs only OpenVINO looks for nodes
    that cannot run, when it opens a model.
    """
    verify(model.graph)
    if model.format == context.target.format:
        return
    in_branches = context.target.format == "ir" and not context.keep_branches
    findings = list(_faults(model.graph, "graph", in_branches))
    if findings:
        raise UnsupportedError(str(context.target), findings)


def _faults(graph: Graph, where: str, in_branches: bool) -> Iterator[Unsupported]:
    for node in graph.nodes:
        if why := impropriety(node) or contradiction(node):
            yield Unsupported(node.op, f"{where} / {node!r}", why)
        if node.bodies and (node.op != "If" or in_branches):
            for role, body in node.roles():
                yield from _faults(body.graph, f"{where} / {node!r} / {role}", in_branches)
