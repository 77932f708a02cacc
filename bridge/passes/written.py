"""What is about to be written is looked over, whoever made it: a file that no engine opens is worse
than a refusal."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.graph import Graph, Model
from bridge.neutral.types import TensorType
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
    if context.target.format == "onnx":
        findings += _without_rank(model.graph)
    if findings:
        raise UnsupportedError(str(context.target), findings)


def _without_rank(graph: Graph) -> Iterator[Unsupported]:
    """The inputs that ONNX cannot declare: it has a word for any size, none for any rank (IR.md,
    Graphs; checker, value_info). An output without a rank runs in onnxruntime all the same, and
    there is no other way of saying that data decide it."""
    for value in graph.inputs:
        if isinstance(value.type, TensorType) and value.shape is None:
            why = (
                "ONNX wants the rank of each input, and this one's is not known; --input-shape "
                "gives it one"
            )
            yield Unsupported("Parameter", f'graph / Parameter "{value.name}"', why)


def _faults(graph: Graph, where: str, in_branches: bool) -> Iterator[Unsupported]:
    for node in graph.nodes:
        if why := impropriety(node) or contradiction(node):
            yield Unsupported(node.op, f"{where} / {node!r}", why)
        if node.bodies and (node.op != "If" or in_branches):
            for role, body in node.roles():
                yield from _faults(body.graph, f"{where} / {node!r} / {role}", in_branches)
