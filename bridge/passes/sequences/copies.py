"""Copies of sequences in ONNX before operator set 14, whose Identity only takes tensors."""

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Iteration, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import I64, SequenceType, TensorType
from bridge.passes.applies import always, applies
from bridge.passes.context import Context

SINCE = 14
"""The operator set whose Identity takes sequences."""


@applies(always)
def spell_copies(model: Model, context: Context) -> bool:
    """Replaces, in place, Identity nodes on sequences. ONNX wants each output made by a node of its
    own graph, so outer values and values that are outputs twice are copied."""
    target, graph = context.target, model.graph
    if target.opset >= SINCE:
        return False
    changed = Rewriter(graph).run(Pattern(_spelled, frozenset({"Identity"}), target))
    bodies = [body.graph for node in graph.walk() for body in node.bodies]
    return any([_outputs_apart(each, target) for each in (graph, *bodies)]) or changed


def _spelled(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    if node.inputs[0] is None or not isinstance(node.outputs[0].type, SequenceType):
        return None
    return _copy(b, node.inputs[0])


def _outputs_apart(graph: Graph, target: Target) -> bool:
    seen: set[Value] = set()
    changed = False
    for index, value in enumerate(graph.outputs):
        wish = graph.output_names[index] if index < len(graph.output_names) else value.name
        has_name = value.producer is not None and value not in seen and value.name == wish
        if isinstance(value.type, SequenceType) and not has_name:
            copy = _copy(Builder(graph.nodes, value.name, target), value)
            copy.names = [wish] if wish else []
            graph.outputs[index] = copy
            changed = True
        seen.add(value)
    return changed


def _copy(b: Builder, sequence: Value) -> Value:
    """A Loop that never runs outputs its inputs."""
    index, state = Value(TensorType(I64, ())), Value(sequence.type)
    graph = Graph([index, state], name="copy")
    graph.outputs = [Builder(graph.nodes, b.name).op("SequenceErase", state)]
    body = Body(graph, [Iteration(), Carried(2, 0)], [Yield(0)])
    loop = b.node("Loop", [b.constant(0), None, sequence], 1, {}, (body,))
    loop.outputs[0].type = loop.outputs[0].declared = sequence.type
    return loop.outputs[0]
