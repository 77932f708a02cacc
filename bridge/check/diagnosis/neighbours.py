"""The neighbours of a value in a file, in the terms of the file's own format."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.errors import amount
from bridge.ir_format.layers import read_graphs

if TYPE_CHECKING:
    import onnx

    from bridge.neutral.tensor import Tensor

_SHOWN = 60  # characters of an attribute
_CONSUMERS = 8
_ELEMENTS = 6  # of a constant
_LARGEST = 1 << 24  # bytes of a constant that is read

CONSTANT = "constant"
"""The type of a neighbour that is a constant."""


@dataclass(frozen=True)
class Neighbour:
    """An ONNX node, a layer of an IR or a constant near a value: it makes an input of the value's
    maker ("before"), the value ("itself"), or takes it ("after"). Inputs and outputs are names."""

    place: str
    type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, str]


def neighbourhood(path: Path, value: str, beside: Collection[str] = ()) -> list[Neighbour]:
    """The node that makes the value of this name, those before it and those after it; nothing
    where the file has no such value. Constants show their first values. Of several graphs that have
    the name that one is meant which has most of the names `beside`."""
    graphs = _ir_graphs(path) if path.suffix.lower() == ".xml" else _onnx_graphs(path)
    found = [graph for graph in graphs if any(value in node.outputs for node in graph[0])]
    if not found:
        return []
    nodes, around = max(found, key=lambda graph: len(_made(graph[0]).intersection(beside)))
    itself = next(node for node in nodes if value in node.outputs)
    seen = [*around, *nodes]
    before = [n for n in seen if n is not itself and set(n.outputs) & set(itself.inputs)]
    after = [n for n in nodes if set(itself.outputs) & set(n.inputs)]
    constants = _constants(path, {*itself.inputs, *itself.outputs})
    values = {"value": constants[value]} if value in constants else {}
    return [
        *(replace(n, place="before") for n in before if not constants.keys() & set(n.outputs)),
        *(
            Neighbour("before", CONSTANT, name, (), (name,), {"value": constants[name]})
            for name in itself.inputs
            if name in constants
        ),
        replace(itself, place="itself", attributes={**itself.attributes, **values}),
        *(replace(node, place="after") for node in after[:_CONSUMERS]),
    ]


def _constants(path: Path, names: Collection[str]) -> dict[str, str]:
    """The types and first values of those constants that have one of the names."""
    from bridge.library.api import load

    found: dict[str, str] = {}
    for node in load(path).graph.walk():
        if node.op == "Constant":
            value = node.outputs[0]
            for name in {*value.names, f"{node.name}:0"} & {*names}:
                found[name] = _values(node.attributes["value"])
    return found


def _values(tensor: Tensor) -> str:
    """The type and the first elements of a constant; of a large one the type alone."""
    if not tensor.size or tensor.nbytes > _LARGEST:
        return str(tensor)
    first = [str(each)[:_SHOWN] for each in tensor.array().reshape(-1)[:_ELEMENTS]]
    return f"{tensor} = {', '.join([*first, *['...'] * (tensor.size > _ELEMENTS)])}"


def _made(nodes: Nodes) -> set[str]:
    return {name for node in nodes for name in node.outputs}


Nodes = list[Neighbour]


def _onnx_graphs(path: Path) -> Iterator[tuple[Nodes, Nodes]]:
    """The nodes of each graph of an ONNX model, outer graphs first. With them are the nodes of the
    graphs around it, whose values it may take. Inputs and outputs count as nodes, as in an IR."""
    import onnx

    waiting: list[tuple[onnx.GraphProto, Nodes]] = [
        (onnx.load(path, load_external_data=False).graph, [])
    ]
    while waiting:
        graph, around = waiting.pop(0)
        nodes = [_onnx_node(node) for node in graph.node]
        nodes += [Neighbour("", "input", "", (), (i.name,), {}) for i in graph.input]
        nodes += [Neighbour("", "output", "", (o.name,), (), {}) for o in graph.output]
        yield nodes, around
        for node in graph.node:
            for attribute in node.attribute:
                inner = [attribute.g] if attribute.HasField("g") else attribute.graphs
                waiting += [(one, [*around, *nodes]) for one in inner]


def _onnx_node(node: onnx.NodeProto) -> Neighbour:
    from onnx import helper

    attributes = {}
    for attribute in node.attribute:
        if attribute.HasField("g"):
            text = f"a graph of {amount(len(attribute.g.node), 'node')}"
        elif attribute.HasField("t"):
            text = f"a tensor of shape {list(attribute.t.dims)}"
        else:
            found = helper.get_attribute_value(attribute)
            text = found.decode(errors="replace") if isinstance(found, bytes) else str(found)
        attributes[attribute.name] = text[:_SHOWN]
    domain = f"{node.domain}::" if node.domain else ""
    return Neighbour(
        "", domain + node.op_type, node.name, tuple(node.input), tuple(node.output), attributes
    )


def _ir_graphs(path: Path) -> Iterator[tuple[Nodes, Nodes]]:
    """The layers of each graph of an IR, outer graphs before inner ones, and nothing around it."""
    for layers in read_graphs(path):
        names = {
            layer.id: [p.names or [f"{layer.name}:{i}"] for i, p in enumerate(layer.outputs)]
            for layer in layers
        }
        nodes = [
            Neighbour(
                "",
                f"{layer.type} ({layer.version})",
                layer.name,
                tuple(names[source][index][0] for source, index in layer.sources),
                tuple(name for port in names[layer.id] for name in port),
                {name: text[:_SHOWN] for name, text in layer.data.items()},
            )
            for layer in layers
        ]
        yield nodes, []
