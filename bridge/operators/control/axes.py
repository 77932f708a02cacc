"""Conversion between slices and stacks of a Loop with their axis (IR) and without it (ONNX)."""

from dataclasses import replace

from bridge.neutral.graph import Graph
from bridge.neutral.inference.control import enter
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.ports import Sliced, Stacked
from bridge.neutral.rewrite import Substitution
from bridge.operators import Builder, Node, Value
from bridge.operators.control.loop_builder import LoopBuilder


def set_axes(b: Builder, loop_builder: LoopBuilder, keepdims: bool) -> None:
    """Changes every slice and stack to keep its axis or to lose it. The body adds or removes the
    axis, so that its own nodes still read the same shapes."""
    body = loop_builder.body
    graph = body.graph
    entering, leave = ("Squeeze", Builder.unsqueeze) if keepdims else ("Unsqueeze", Builder.squeeze)
    front: list[Node] = []
    inner = Builder(front, loop_builder.node.name, b.target)
    outer = Node("Loop", loop_builder.inputs, [])
    for index, (old, port) in enumerate(body.entries()):
        if isinstance(port, Sliced) and port.keepdims != keepdims:
            port = body.inputs[index] = replace(port, keepdims=keepdims)
            part = graph.inputs[index] = Value(names=list(map(_other_name, old.names[:1])))
            enter(outer, part, port)
            part.declared = part.type
            inner.node(entering, [part, inner.constant([port.axis])], [old])
            old.declared = old.type
            if keepdims:
                _keep(part, old, port.axis, graph)
    graph.prepend(front)
    inner = loop_builder.inside(b)
    for index, (value, exit) in enumerate(body.exits()):
        if isinstance(exit, Stacked) and exit.keepdims != keepdims:
            body.outputs[index] = replace(exit, keepdims=keepdims)
            graph.outputs[index] = leave(inner, value, exit.axis)


def _keep(part: Value, bare: Value, axis: int, graph: Graph) -> None:
    """Replaces each node that adds the axis to `bare` again by the part with its axis. A pattern of
    the rewriter cannot do this, because it would change shared nodes. The body shares its nodes
    with the original Loop, and the original Loop must not change."""
    again = Substitution()
    for node in graph.nodes:
        if node.op == "Unsqueeze" and node.inputs[0] is bare and bare.rank is not None:
            axes = known_axes(node.inputs[1], bare.rank + 1)
            if axes is not None and list(axes) == [axis % (bare.rank + 1)]:
                again.replace(node.outputs[0], part)
    if again:
        graph.nodes = [again.applied(node) for node in graph.nodes]
        again.finish(graph)


def _other_name(name: str) -> str:
    """The name of a part with its axis, made from the name without the axis, or the reverse."""
    return name.removesuffix(".part") if name.endswith(".part") else f"{name}.part"
