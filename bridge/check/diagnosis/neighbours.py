"""The neighbours of a value in a file: what makes it, what that takes, and what takes the value."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.check.files import read
from bridge.check.surgery.sites import graphs_of
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.tensor import Tensor

_SHOWN = 60  # characters of an attribute
_CONSUMERS = 8
_ELEMENTS = 6  # of a constant
_LARGEST = 1 << 24  # bytes of a constant that is read

CONSTANT = "constant"
"""The type of a neighbour that is a constant."""


@dataclass(frozen=True)
class Neighbour:
    """A node, an input, an output or a constant near a value: it makes an input of the value's
    maker ("before"), the value ("itself"), or takes it ("after"). Inputs and outputs are names."""

    place: str
    type: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, str]


def neighbourhood(path: Path, name: str, beside: Collection[str] = ()) -> list[Neighbour]:
    """The node that makes the value of this name, those before it and those after it; nothing
    where the file has no such value. Of several graphs that have the name that one is meant which
    has most of the names `beside`."""
    named = [
        (len(_names(graph).intersection(beside)), graph, value)
        for _, graph in graphs_of(read(path))
        for node in graph.nodes
        for value in node.outputs
        if name in value.names
    ]
    if not named:
        return []
    _, graph, value = max(named, key=lambda one: one[0])
    node = value.producer
    assert node is not None
    taken = dict.fromkeys(v for v in node.inputs if v is not None)
    makers = dict.fromkeys(v.producer or v for v in taken)
    takers = [n for n in graph.nodes if not {*n.inputs}.isdisjoint(node.outputs)]
    ends = [v for v in graph.outputs if v in node.outputs]
    return [
        *(_neighbour("before", maker) for maker in makers),
        _neighbour("itself", node),
        *(_neighbour("after", taker) for taker in takers[:_CONSUMERS]),
        *(Neighbour("after", "output", "", (v.name,), (), {}) for v in ends),
    ]


def _names(graph: Graph) -> set[str]:
    return {name for node in graph.nodes for value in node.outputs for name in value.names}


def _neighbour(place: str, near: Node | Value) -> Neighbour:
    if isinstance(near, Value):
        return Neighbour(place, "input", near.name, (), (near.name,), {})
    outputs = tuple(value.name for value in near.outputs)
    is_constant = near.op == "Constant"
    return Neighbour(
        place,
        CONSTANT if is_constant else near.op,
        outputs[0] if is_constant else near.name,
        tuple(value.name for value in near.inputs if value is not None),
        outputs,
        {name: _shown(value) for name, value in near.attributes.items()},
    )


def _shown(value: Any) -> str:
    """An attribute as text. Of a constant that is the type and the first elements."""
    if not isinstance(value, Tensor):
        return str(value)[:_SHOWN]
    if not value.size or value.nbytes > _LARGEST:
        return str(value)
    first = [str(each)[:_SHOWN] for each in value.array().reshape(-1)[:_ELEMENTS]]
    return f"{value} = {', '.join([*first, *['...'] * (value.size > _ELEMENTS)])}"
