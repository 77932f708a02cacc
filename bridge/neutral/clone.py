"""Copies of nodes, graphs and models."""

from copy import copy

from bridge.limits import budget
from bridge.neutral.graph import Body, Graph, Model, Node, Value


def clone_value(value: Value) -> Value:
    """A value of the same type, names and content, without a producer."""
    result = Value(value.type, list(value.names))
    result.declared = value.declared
    result.known_value, result.computed = value.known_value, value.computed
    return result


def clone_node(node: Node, values: dict[Value, Value]) -> Node:
    """A copy of a node, bodies included. `values` maps the node's inputs to the copy's inputs; the
    outputs are added to it."""
    budget().node(node.op, node.name)
    inputs = [None if v is None else values.get(v, v) for v in node.inputs]
    outputs = []
    for value in node.outputs:
        values[value] = clone_value(value)
        outputs.append(values[value])
    bodies = tuple(clone_body(body) for body in node.bodies)
    extras = node.extras.copy() if node.extras else None
    if extras and "provenance" in extras:
        extras["provenance"] = extras["provenance"].of(lambda v: values.get(v, v))
    return Node(node.op, inputs, outputs, dict(node.attributes), bodies, node.name, extras)


def clone_body(body: Body) -> Body:
    """A copy of a body and all graphs nested in it; Tensors are shared."""
    graph = _clone_graph(body.graph, {})
    return Body(graph, [copy(p) for p in body.inputs], [copy(p) for p in body.outputs])


def clone_model(model: Model) -> Model:
    """A copy of a model, to be changed; Tensors are shared."""
    values: dict[Value, Value] = {}
    graph = _clone_graph(model.graph, values)
    extras = model.extras.copy()
    if "onnx" in extras:
        extras["onnx"] = extras["onnx"].copy()
    if "ir" in extras:
        own = extras["ir"].get("parameters", {})
        parameters = {values.get(v, v): known for v, known in own.items()}
        extras["ir"] = {**extras["ir"], "parameters": parameters}
    return Model(
        graph,
        model.format,
        model.opset,
        dict(model.opsets),
        {values[value]: tensor for value, tensor in model.defaults.items()},
        dict(model.metadata),
        extras,
        list(model.notes),
        dict(model.files),
    )


def _clone_graph(graph: Graph, values: dict[Value, Value]) -> Graph:
    """A copy of a graph; its values are added to `values`."""
    result = Graph(name=graph.name)
    for value in graph.inputs:
        values[value] = clone_value(value)
        result.inputs.append(values[value])
    result.nodes = [clone_node(node, values) for node in graph.nodes]
    result.outputs = [values[v] for v in graph.outputs]
    result.output_names = list(graph.output_names)
    return result
