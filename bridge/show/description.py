"""A model described by plain lists and dictionaries, as `bridge inspect --json` prints it."""

from collections import Counter

from bridge.neutral.graph import (
    Body,
    Graph,
    Model,
    Node,
    Value,
    names_of_outputs,
    sizes_of_constants,
)
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Invariant,
    Iteration,
    OutputPort,
    Sliced,
    Stacked,
    Yield,
)
from bridge.neutral.types import ForeignType, OptionalType, SequenceType, Shape, TensorType, Type
from bridge.records.entry import Json
from bridge.show.outline import called, says


def describe(model: Model, file: str) -> Json:
    """The model as JSON-like data.

    `operators` counts all nodes, also in nested graphs, without constants. Each entry of
    `control_flow` is an If or Loop with its inputs, outputs and bodies, and the formula that
    decides it (`says`). A body has its ports and its own `control_flow`.
    """
    graph = model.graph
    constants = sizes_of_constants(graph)
    counts = Counter(node.op for node in graph.walk() if node.op != "Constant")
    result: Json = {"file": file, "format": model.format}
    if model.opset is not None:
        result["opset"] = model.opset
        result["domains"] = dict(sorted(model.opsets.items()))
    result |= {
        "inputs": [
            {"name": value.name, **_type(value.type), "has_default": value in model.defaults}
            for value in graph.inputs
        ],
        "outputs": [
            {"name": name, **_type(value.type)}
            for name, value in zip(names_of_outputs(graph), graph.outputs, strict=True)
        ],
        "operators": dict(sorted(counts.items())),
        "constants": {"count": len(constants), "bytes": sum(constants)},
        "control_flow": _control_flow(graph, {}),
    }
    return result


def _type(type: Type) -> Json:
    match type:
        case TensorType():
            return {
                "kind": "tensor",
                "element": type.element.name if type.element else None,
                "shape": _shape(type.shape),
            }
        case SequenceType():
            return {"kind": "sequence", "item": _type(type.item)}
        case OptionalType():
            return {"kind": "optional", "item": _type(type.item)}
        case ForeignType():
            return {"kind": type.name}


def _shape(shape: Shape) -> list[int | str] | None:
    """Sizes, and symbols or intervals as text; None if not even the rank is known."""
    return None if shape is None else [d if isinstance(d, int) else str(d) for d in shape]


def _name(value: Value | None) -> str | None:
    return None if value is None else called(value)


def _control_flow(graph: Graph, captured: dict[Value, Value]) -> list[Json]:
    return [_node(node, captured) for node in graph.nodes if node.bodies]


def _node(node: Node, captured: dict[Value, Value]) -> Json:
    return {
        "operator": node.op,
        "name": node.name or next((_name(value) for value in node.outputs), ""),
        "says": says(node, captured),
        "inputs": [_name(value) for value in node.inputs],
        "outputs": [{"name": _name(value), **_type(value.type)} for value in node.outputs],
        "bodies": [_body(node, role, body, captured) for role, body in node.roles()],
    }


def _body(node: Node, role: str, body: Body, captured: dict[Value, Value]) -> Json:
    graph = body.graph
    captured.update(node.captures(body))
    return {
        "role": role,
        "nodes": sum(inner.op != "Constant" for inner in graph.nodes),
        "inputs": [
            {"name": _name(value), **_type(value.type), **_input_port(node, body, port)}
            for value, port in body.entries()
        ],
        "outputs": [
            {"name": _name(value), **_type(value.type), **_output_port(node, port)}
            for value, port in body.exits()
        ],
        "control_flow": _control_flow(graph, captured),
    }


def _input_port(node: Node, body: Body, port: InputPort) -> Json:
    match port:
        case Invariant(index):
            return {"port": "invariant", "from": _name(node.inputs[index])}
        case Carried(index, output):
            start = None if index is None else _name(node.inputs[index])
            return {"port": "carried", "from": start, "next": _name(body.graph.outputs[output])}
        case Sliced():
            return {"port": "sliced", "from": _name(node.inputs[port.input]), **_slices(port)}
        case Iteration():
            return {"port": "iteration"}


def _output_port(node: Node, port: OutputPort) -> Json:
    match port:
        case Yield(int(index)):
            return {"port": "yield", "to": _name(node.outputs[index])}
        case Yield():
            return {"port": "next"}
        case Stacked():
            return {"port": "stacked", "to": _name(node.outputs[port.output]), **_slices(port)}
        case Condition():
            return {"port": "condition"}


def _slices(port: Sliced | Stacked) -> Json:
    names = ("axis", "start", "stride", "end", "part_size", "keepdims")
    return {name: getattr(port, name) for name in names}
