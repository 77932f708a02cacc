"""The layers of one `<net>` or body element, checked and in topological order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bridge.errors import InvalidModelError
from bridge.ir_format.attributes import port_type
from bridge.ir_format.document import read_document, select
from bridge.ir_format.names import split_names
from bridge.ir_format.text import inner_xml
from bridge.limits import budget
from bridge.neutral.order import Cycle, topological
from bridge.neutral.types import TensorType
from bridge.operators.ir_texts import integer
from bridge.vocabulary import ir_type

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

NEWEST = 17
"""The newest operator set."""

Edge = tuple[int, int, int, int]
"""The layer and the port at the start of an edge, then the layer and the port at its end."""


class Port(NamedTuple):
    """A port of a layer, with the tensor's type and names in the file."""

    id: int
    type: TensorType
    names: list[str]
    rt_info: str


@dataclass(eq=False, slots=True)
class Layer:
    """A layer. `sources[i]` is the layer and the output index that feed input `i`. `given` is the
    name that somebody gave it, "" if it only has a name because every layer needs one. `parts` are
    the elements with its bodies and port maps, and unknown elements."""

    id: int
    name: str
    type: str
    version: str
    output_names: str
    data: dict[str, str] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    sources: list[tuple[int, int]] = field(default_factory=list)
    parts: list[XmlElement] = field(default_factory=list)
    rt_info: str = ""
    given: str = ""

    def __str__(self) -> str:
        return f'{self.type} "{self.name}"'


def number(xml: XmlElement, attribute: str, where: str) -> int:
    """An integer attribute; InvalidModelError if it is missing or none."""
    try:
        return integer(xml.attrib[attribute])
    except (KeyError, ValueError):
        given = xml.attrib.get(attribute)
        has = "lacks" if given is None else f'has "{given}" as'
        raise InvalidModelError(f"{where}: <{xml.tag}> {has} the number {attribute}") from None


def read_net(path: Path) -> tuple[XmlElement, list[Layer], list[Edge]]:
    """The root of an IR, its layers, not yet connected, and its edges."""
    layers: list[Layer] = []
    edges: list[Edge] = []

    def take(net: XmlElement, element: XmlElement) -> None:
        where = net.get("name") or path.stem
        if element.tag == "layer":
            layers.append(read_layer(element, where))
        elif element.tag == "edge":
            edges.append(read_edge(element, where))

    return read_document(path, take), layers, edges


def read_graphs(path: Path) -> Iterator[list[Layer]]:
    """The layers of each graph of an IR, outer graphs before inner ones, for who shows them."""
    _, layers, edges = read_net(path)
    waiting = [arrange(layers, edges, str(path), [])]
    while waiting:
        graph = waiting.pop(0)
        yield graph
        waiting += [
            read_layers(part, str(path), [])
            for layer in graph
            for part in layer.parts
            if part.tag in ("body", "then_body", "else_body")
        ]


def read_layers(body: XmlElement, where: str, notes: list[str]) -> list[Layer]:
    """The layers of a body, in file order, except layers before their inputs: these are moved, and
    `notes` records it. InvalidModelError for edges to nowhere and cycles."""
    layers = [read_layer(xml, where) for xml in select(body, "layers", "layer")]
    edges = [read_edge(xml, where) for xml in select(body, "edges", "edge")]
    return arrange(layers, edges, where, notes)


def arrange(found: list[Layer], edges: list[Edge], where: str, notes: list[str]) -> list[Layer]:
    """Layers connected by edges, in file order, except layers before their inputs."""
    budget().allow(nodes=len(found))
    layers: dict[int, Layer] = {}
    for layer in found:
        if layer.id in layers:
            raise InvalidModelError(f"{where}: two layers have the id {layer.id}")
        layers[layer.id] = layer
    if not layers:
        raise InvalidModelError(f"{where}: there are no layers; is this an OpenVINO IR?")
    _connect(edges, layers, where)
    return _sorted(layers, where, notes)


def read_edge(xml: XmlElement, where: str) -> Edge:
    """An edge."""
    ends = xml.attrib
    try:
        a, b, c, d = map(integer, [ends[name] for name in _ENDS])
    except (KeyError, ValueError):  # It is named.
        a, b, c, d = (number(xml, name, where) for name in _ENDS)
    return a, b, c, d


_ENDS = ("from-layer", "from-port", "to-layer", "to-port")


def read_layer(xml: XmlElement, where: str) -> Layer:
    """A layer, not yet connected."""
    version = xml.get("version", "opset1")
    if (opset := version.removeprefix("opset")).isdecimal() and not 1 <= int(opset) <= NEWEST:
        raise InvalidModelError(
            f'{where}: layer "{xml.get("name", "")}" is of operator set {opset}; Bridge knows '
            f"1 to {NEWEST}"
        )
    layer = Layer(
        number(xml, "id", where), xml.get("name", ""), _type(xml.get("type", ""), version), version,
        xml.get("output_names", ""),
    )  # fmt: skip
    layer.given = layer.name
    # If a known element stands there several times, OpenVINO reads the first. So they are read
    # from the last.
    for child in reversed(xml):
        tag = child.tag
        if tag == "data":
            layer.data = child.attrib
        elif tag == "input":
            layer.inputs = [_port(port, layer, where) for port in child if port.tag == "port"]
        elif tag == "output":
            layer.outputs = [_port(port, layer, where) for port in child if port.tag == "port"]
        elif tag == "rt_info":
            layer.rt_info = inner_xml(child)
        else:
            layer.parts.append(child)
    layer.parts.reverse()
    return layer


def _type(text: str, version: str) -> str:
    """The type as its mapping row or rule has it; OpenVINO reads its own types in any case."""
    return ir_type(text) if version.startswith("opset") else text


def _port(xml: XmlElement, layer: Layer, where: str) -> Port:
    dims = [child.text or "" for child in xml if child.tag == "dim"]
    rt_info = ""
    if len(dims) < len(xml):
        rt_info = next((inner_xml(child) for child in reversed(xml) if child.tag == "rt_info"), "")
    names = xml.get("names", "")
    try:
        port = _plain_port(number(xml, "id", where), xml.get("precision", ""), *dims)
    except ValueError as error:
        raise InvalidModelError(f"{where} / {layer}: port {xml.get('id', '')}: {error}") from None
    return Port(port.id, port.type, split_names(names), rt_info) if names or rt_info else port


@lru_cache(maxsize=1024)
def _plain_port(id: int, precision: str, *dims: str) -> Port:
    """A port without names. Most ports of a file are like another."""
    return Port(id, port_type(precision, [integer(dim) for dim in dims]), [], "")


def _connect(edges: list[Edge], layers: dict[int, Layer], where: str) -> None:
    inputs = {(x.id, p.id): i for x in layers.values() for i, p in enumerate(x.inputs)}
    outputs = {(x.id, p.id): i for x in layers.values() for i, p in enumerate(x.outputs)}
    sources: dict[int, dict[int, tuple[int, int]]] = {}
    for from_layer, from_port, to_layer, to_port in edges:
        source, target = (from_layer, from_port), (to_layer, to_port)
        for end, ports in ((source, outputs), (target, inputs)):
            if end not in ports:
                kind = "output" if ports is outputs else "input"
                missing = f"{kind} port {end[1]}" if end[0] in layers else "such layer"
                raise InvalidModelError(
                    f"{where}: an edge names layer {end[0]}, port {end[1]}: there is no {missing}"
                )
        index = inputs[target]
        ends = sources.setdefault(target[0], {})
        if index in ends:
            raise InvalidModelError(
                f"{where}: two edges lead to layer {target[0]}, port {target[1]}"
            )
        ends[index] = (source[0], outputs[source])
    for layer_id, ends in sources.items():
        layer = layers[layer_id]
        if len(ends) <= max(ends):
            first = next(i for i in range(max(ends)) if i not in ends)
            raise InvalidModelError(
                f"{where} / {layer}: nothing is connected to input port {layer.inputs[first].id}"
            )
        layer.sources = [ends[i] for i in range(len(ends))]


def _sorted(layers: dict[int, Layer], where: str, notes: list[str]) -> list[Layer]:
    """File order, each layer after the layers it needs, Parameters first: their order counts."""
    given = sorted(layers.values(), key=lambda layer: layer.type != "Parameter")
    places = {layer.id: place for place, layer in enumerate(given)}
    needs = [[places[source] for source, _ in layer.sources] for layer in given]
    try:
        order = topological(needs)
    except Cycle as cycle:
        raise InvalidModelError(
            f"{where} / {given[cycle.member]}: is part of a cycle of layers"
        ) from None
    early = next((place for place, at in enumerate(order) if place != at), None)
    if early is not None and not notes:
        notes.append(
            f"layers stand before others that they need, first {where} / {given[early]}; they "
            "were sorted"
        )
    return [given[place] for place in order]
