"""Copies of nodes and graphs."""

from __future__ import annotations

from copy import copy

from bridge.neutral.graph import Body, Graph, Node, Value


def clone_value(value: Value) -> Value:
    """A value of the same type, names and content, without a producer."""
    result = Value(value.type, list(value.names))
    result.declared = value.declared
    result.content = value.content
    return result


def clone_node(node: Node, values: dict[Value, Value]) -> Node:
    """A copy of a node, bodies included. `values` says what stands for its inputs, and learns
    what stands for its outputs."""
    inputs = [None if v is None else values.get(v, v) for v in node.inputs]
    outputs = []
    for value in node.outputs:
        values[value] = clone_value(value)
        outputs.append(values[value])
    bodies = tuple(clone_body(body) for body in node.bodies)
    extras = dict(node.extras) if node.extras else None
    return Node(node.op, inputs, outputs, dict(node.attributes), bodies, node.name, extras)


def clone_body(body: Body) -> Body:
    """A copy of a body and all that is nested in it; Tensors are shared."""
    values: dict[Value, Value] = {}
    graph = Graph(name=body.graph.name)
    for value in body.graph.inputs:
        values[value] = clone_value(value)
        graph.inputs.append(values[value])
    graph.nodes = [clone_node(node, values) for node in body.graph.nodes]
    graph.outputs = [values[v] for v in body.graph.outputs]
    return Body(graph, [copy(p) for p in body.inputs], [copy(p) for p in body.outputs])
