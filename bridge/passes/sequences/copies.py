"""Copies of sequences in ONNX before operator set 14, whose Identity takes tensors alone."""

from __future__ import annotations

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Iteration, Yield
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import I64, SequenceType, TensorType
from bridge.passes.context import Context

SINCE = 14
"""The operator set whose Identity takes sequences."""


def spell_copies(model: Model, context: Context) -> None:
    """Replaces, in place, Identity nodes on sequences, and makes copies of what ONNX wants as an
    output made by a node of its own graph: outer values, and values that are outputs twice."""
    if context.target.opset < SINCE:
        _graph(model.graph, context.target)


def _graph(graph: Graph, target: Target) -> None:
    substitution = Substitution()
    nodes: list[Node] = []
    for node in graph.nodes:
        for body in node.bodies:
            _graph(body.graph, target)
        if node.op == "Identity" and isinstance(node.outputs[0].type, SequenceType):
            substitution.apply(node)
            assert node.inputs[0] is not None
            copy = _copy(Builder(nodes, node.name, target), node.inputs[0])
            copy.names = node.outputs[0].names
            substitution.replace(node.outputs[0], copy)
            continue
        substitution.apply(node)
        nodes.append(node)
    substitution.finish(graph)
    seen: set[Value] = set()
    for index, value in enumerate(graph.outputs):
        wish = graph.output_names[index] if index < len(graph.output_names) else value.name
        own = value.producer is not None and value not in seen and value.name == wish
        if isinstance(value.type, SequenceType) and not own:
            copy = _copy(Builder(nodes, value.name, target), value)
            copy.names = [wish] if wish else []
            graph.outputs[index] = copy
        seen.add(value)
    graph.nodes = nodes


def _copy(b: Builder, sequence: Value) -> Value:
    """A Loop that never runs gives what goes in."""
    index, state = Value(TensorType(I64, ())), Value(sequence.type)
    graph = Graph([index, state], name="copy")
    graph.outputs = [Builder(graph.nodes, b.name).op("SequenceErase", state)]
    body = Body(graph, [Iteration(), Carried(2, 0)], [Yield(0)])
    made = b.node("Loop", [b.constant(0), None, sequence], 1, {}, (body,))
    made.outputs[0].type = made.outputs[0].declared = sequence.type
    return made.outputs[0]
