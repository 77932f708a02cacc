"""If, Loop and TensorIterator layers: port maps become the ports of bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bridge.errors import InvalidModelError, Refused
from bridge.ir_format.document import select
from bridge.ir_format.layers import Layer, number, read_layers
from bridge.ir_format.provenance import key_of_body
from bridge.ir_format.values import extras_of, parameter, values_of_ports
from bridge.limits import budget
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference.control import enter
from bridge.neutral.inference.known import known_of
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
from bridge.neutral.types import BOOL, I64, TensorType, join, without_sizes

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

    from bridge.ir_format.frontend import IrReader


@dataclass(eq=False)
class _Entry:
    """An `<input>` or `<output>` of a port map: the outer port, the body's layer, and the rest."""

    port: int
    layer: int
    xml: XmlElement

    @property
    def purpose(self) -> str:
        return self.xml.get("purpose", "")

    @property
    def has_axis(self) -> bool:
        return "axis" in self.xml.attrib


@dataclass(eq=False)
class _Maps:
    """The port maps of one body: entries by body layer, back edges from Parameter to Result."""

    inputs: dict[int, _Entry] = field(default_factory=dict)
    outputs: list[_Entry] = field(default_factory=list)
    back_edges: dict[int, int] = field(default_factory=dict)


def read_if(
    reader: IrReader, builder: Builder, layer: Layer, inputs: list[Value], where: str
) -> Sequence[Value]:
    """Appends an If; both bodies share one input for each distinct outer value."""
    where = f"{where} / {layer}"
    if not inputs:
        raise InvalidModelError(f"{where}: has no condition")
    node = Node("If", [_boolean(builder, inputs[0])], [], {}, (), layer.given)
    maps = {branch: _read_maps(layer, f"{branch}_port_map", where) for branch in ("then", "else")}
    indices: dict[Value, int] = {}
    places_of_ports = _ports(layer)
    entries = [entry for found in maps.values() for entry in found.inputs.values()]
    for entry in sorted(entries, key=lambda e: e.port):
        value = _outer(places_of_ports, inputs, entry, where)
        if value.constant is None and value not in indices:
            indices[value] = len(node.inputs)
            node.inputs.append(value)
    bodies = []
    for branch, found in maps.items():
        outer = {
            id: _outer(places_of_ports, inputs, entry, where) for id, entry in found.inputs.items()
        }
        ports: dict[int, InputPort] = {
            id: Invariant(indices.get(value, -1)) for id, value in outer.items()
        }
        numbers = _output_numbers(layer, found.outputs, where)
        missing = set(range(len(layer.outputs))) - set(numbers.values())
        if missing:
            raise InvalidModelError(
                f"{where} / {branch}_port_map: nothing leads to output port "
                f"{layer.outputs[min(missing)].id}"
            )
        uses = [(entry.layer, Yield(numbers[entry.port])) for entry in found.outputs]
        bodies.append(_read_body(reader, layer, f"{branch}_body", node, ports, outer, uses, where))
    return _append(builder, layer, node, tuple(bodies))


def read_loop(
    reader: IrReader, builder: Builder, layer: Layer, inputs: list[Value], where: str
) -> Sequence[Value]:
    """Appends a Loop: IR's Loop has trip count and condition, its TensorIterator has neither."""
    where = f"{where} / {layer}"
    node = Node("Loop", _heads(builder, layer, inputs, where), [], {}, (), layer.given)
    maps = _read_maps(layer, "port_map", where)
    numbers = _output_numbers(layer, [e for e in maps.outputs if e.port >= 0], where)
    repeats = _repeated_outputs(maps.outputs, numbers)
    # The node's own outputs, numbered without outputs that repeat another.
    own = [index for index in range(len(layer.outputs)) if index not in repeats]
    place = {index: own_index for own_index, index in enumerate(own)}
    uses: list[tuple[int, OutputPort]] = []
    for entry in maps.outputs:
        if entry.purpose == "execution_condition":
            uses.append((entry.layer, Condition()))
        if entry.port >= 0 and numbers[entry.port] not in repeats:
            uses.append((entry.layer, _output_port(entry, place[numbers[entry.port]], where)))
    known = {id for id, use in uses if isinstance(use, Yield)}
    uses += [(id, Yield(None)) for id in dict.fromkeys(maps.back_edges.values()) if id not in known]
    uses = _in_result_order(layer, uses, where)
    places = _places(uses)
    ports: dict[int, InputPort] = {}
    outer: dict[int, Value] = {}
    places_of_ports = _ports(layer)
    for entry in maps.inputs.values():
        if entry.purpose == "current_iteration":
            ports[entry.layer] = Iteration()
            continue
        outer[entry.layer] = _outer(places_of_ports, inputs, entry, where)
        port = _input_port(entry, len(node.inputs), maps, places, where)
        _require_axis(port, outer[entry.layer].rank, where)
        ports[entry.layer] = port
        if not isinstance(port, Invariant) or outer[entry.layer].constant is None:
            node.inputs.append(outer[entry.layer])
    body = _read_body(reader, layer, "body", node, ports, outer, uses, where)
    return _append(builder, layer, node, (body,), repeats)


def _heads(builder: Builder, layer: Layer, inputs: list[Value], where: str) -> list[Value | None]:
    """The trip count (None: no limit) and the condition."""
    if layer.type != "Loop":
        return [None, None]
    if len(inputs) < 2:
        raise InvalidModelError(f"{where}: has no trip count or no condition")
    count = known_of(inputs[0]).ints
    return [
        None if count and count[0] < 0 else inputs[0],
        _boolean(builder, inputs[1]),
    ]


def _places(uses: Sequence[tuple[int, OutputPort]]) -> dict[int, int]:
    """The body output that a carried input takes, by the Result. If the Loop yields the Result,
    it is the yielded output."""
    places: dict[int, int] = {}
    for index, (id, use) in enumerate(uses):
        if id not in places or isinstance(use, Yield):
            places[id] = index
    return places


def _require_axis(port: InputPort, rank: int | None, where: str) -> None:
    """Refuses slices along an axis that a tensor of this rank lacks."""
    if isinstance(port, Sliced) and rank is not None and not -rank <= port.axis < rank:
        raise InvalidModelError(f"{where}: slices a tensor of rank {rank} at axis {port.axis}")


def _boolean(builder: Builder, condition: Value) -> Value:
    """A condition; IR lets it be a number, too."""
    known = condition.element in (None, BOOL)
    return condition if known else builder.op("Cast", condition, to=BOOL)


def _read_maps(layer: Layer, tag: str, where: str) -> _Maps:
    """The entries of a port map; inputs in the order of the outer ports."""
    maps = _Maps()
    where = f"{where} / {tag}"
    inputs: list[_Entry] = []
    for xml in select(layer.parts, tag, "*"):
        entry = _Entry(
            number(xml, "external_port_id", where), number(xml, "internal_layer_id", where), xml
        )
        if entry.port < 0 and not entry.purpose:
            raise InvalidModelError(f"{where}: there is no port {entry.port}")
        (inputs if xml.tag == "input" else maps.outputs).append(entry)
    for entry in sorted(inputs, key=lambda e: e.port):
        if entry.layer in maps.inputs:
            raise InvalidModelError(f"{where}: two ports lead to layer {entry.layer} of the body")
        if entry.purpose and entry.purpose in {known.purpose for known in maps.inputs.values()}:
            raise InvalidModelError(f"{where}: two layers of the body are the {entry.purpose}")
        maps.inputs[entry.layer] = entry
    for edge in select(layer.parts, "back_edges", "edge"):
        target = number(edge, "to-layer", where)
        maps.back_edges[target] = number(edge, "from-layer", where)
    return maps


def _ports(layer: Layer) -> dict[int, int]:
    """The places of a layer's input ports by their ids."""
    return {port.id: index for index, port in reversed([*enumerate(layer.inputs)])}


def _outer(ports: Mapping[int, int], inputs: list[Value], entry: _Entry, where: str) -> Value:
    """The outer value of an input entry, by the port's id (OpenVINO: by its place)."""
    place = ports.get(entry.port, len(inputs))
    if place < len(inputs):
        return inputs[place]
    if 0 <= entry.port < len(inputs):
        return inputs[entry.port]
    raise InvalidModelError(f"{where}: its port map names input port {entry.port}; there is none")


def _output_numbers(layer: Layer, entries: list[_Entry], where: str) -> dict[int, int]:
    """The node output for each outer port of output entries. OpenVINO's files give the port's
    id; the specification's examples count the outputs from 0. Either way they are in order."""
    ids = {port.id: index for index, port in enumerate(layer.outputs)}
    named = sorted({entry.port for entry in entries})
    if all(port in ids for port in named):
        return {port: ids[port] for port in named}
    if len(named) > len(ids):
        raise InvalidModelError(
            f"{where}: its port map names {len(named)} outputs; it has {len(ids)}"
        )
    return {port: rank for rank, port in enumerate(named)}


def _repeated_outputs(entries: list[_Entry], numbers: dict[int, int]) -> dict[int, int]:
    """Maps outputs to earlier outputs of the same Result. OpenVINO gives both the same state even
    after no iteration, whichever states go back from that Result."""
    first: dict[int, int] = {}
    repeats: dict[int, int] = {}
    for entry in sorted(entries, key=lambda e: e.port):
        if entry.port >= 0 and not entry.has_axis:
            number = numbers[entry.port]
            if first.setdefault(entry.layer, number) != number:
                repeats[number] = first[entry.layer]
    return repeats


def _input_port(
    entry: _Entry, index: int, maps: _Maps, places: dict[int, int], where: str
) -> InputPort:
    """The port of a Loop's body input; `index` is its input of the node."""
    if entry.has_axis:
        return Sliced(index, **_slicing(entry, where))
    result = maps.back_edges.get(entry.layer)
    return Invariant(index) if result is None else Carried(index, places[result])


def _output_port(entry: _Entry, index: int, where: str) -> OutputPort:
    """The port of a Loop's body output; `index` is its output of the node."""
    if entry.has_axis:
        return Stacked(index, **_slicing(entry, where))
    return Yield(index)


def _slicing(entry: _Entry, where: str) -> dict[str, Any]:
    names = ("axis", "start", "stride", "end", "part_size")
    return {n: number(entry.xml, n, where) for n in names if n in entry.xml.attrib}


def _in_result_order(
    layer: Layer, uses: list[tuple[int, OutputPort]], where: str
) -> list[tuple[int, OutputPort]]:
    """Uses of body results in the file's order of the Result layers. A Result without a use stays,
    because it keeps its input from being removed."""
    order: dict[int, int] = {}
    for xml in select(layer.parts, "body", "layers", "layer"):
        if xml.get("type") == "Result":
            order[number(xml, "id", where)] = len(order)
    used = {id for id, _ in uses}
    for id in used:
        if id not in order:
            raise InvalidModelError(
                f"{where}: its port map names layer {id}, no Result of the body"
            )
    spare = [(id, Yield(None)) for id in order if id not in used]
    return sorted([*uses, *spare], key=lambda use: order[use[0]])


def _read_body(
    reader: IrReader,
    layer: Layer,
    tag: str,
    node: Node,
    ports: dict[int, InputPort],
    outer: dict[int, Value],
    uses: Sequence[tuple[int, OutputPort]],
    where: str,
) -> Body:
    """The body in element `tag`. A constant of the graph around it becomes its own constant."""
    found = select(layer.parts, tag)
    where = f"{where} / {tag}"
    if not found:
        raise InvalidModelError(f"{where}: is missing")
    reader.depth += 1
    budget().graph(reader.depth, where)
    layers = read_layers(found[0], where, reader.notes)
    graph = Graph()
    reader.bodies.append(graph)
    body = Body(graph)
    parameters = [inner for inner in layers if inner.type == "Parameter"]
    if layer.type == "TensorIterator":
        _require_elements(parameters, outer, where)
    values = _enter_body(body, node, parameters, ports, outer, where)
    for id in ports:
        if id not in values:
            raise InvalidModelError(f"{where}: has no Parameter with the id {id}")
    outside, reader.key = reader.key, key_of_body(reader.key, layer.name, tag)
    results = reader.build(graph, layers, values, where)
    reader.key = outside
    for id, use in uses:
        if id not in results:
            raise InvalidModelError(f"{where}: has no Result with the id {id}")
        result = results[id]
        if isinstance(use, Condition):
            result = _boolean(Builder(graph.nodes), result)
        body.add_exit(result, use)
    reader.depth -= 1
    return body


def _require_elements(parameters: Sequence[Layer], outer: dict[int, Value], where: str) -> None:
    """Refuses bodies whose inputs have other element types than the values they get. As in
    OpenVINO, only the Parameters of a TensorIterator count here, not those of an If or a Loop."""
    for layer in parameters:
        declared = parameter(layer, where).element
        given = outer[layer.id].element if layer.id in outer else None
        if None not in (declared, given) and declared is not given:
            raise InvalidModelError(f"{where} / {layer}: is {declared}, and is given {given}")


def _enter_body(
    body: Body,
    node: Node,
    parameters: Sequence[Layer],
    ports: dict[int, InputPort],
    outer: dict[int, Value],
    where: str,
) -> dict[int, Value]:
    """Gives a body its inputs; returns the value of each Parameter for its layers, by id."""
    builder = Builder(body.graph.nodes)
    values: dict[int, Value] = {}
    for layer in parameters:
        port = ports.get(layer.id)
        if port is None:
            raise InvalidModelError(f"{where} / {layer}: no port leads to it")
        constant = outer[layer.id].constant if isinstance(port, Invariant) else None
        value = parameter(layer, where)
        if constant is not None:
            values[layer.id] = builder.tensor(constant, value.names, layer.given)
            continue
        body.add_entry(value, port)
        values[layer.id] = _enter(builder, node, value, port, f"{where} / {layer}")
    return values


def _enter(builder: Builder, node: Node, value: Value, port: InputPort, where: str) -> Value:
    """Sets the type of a body input; the value that the body's layers see."""
    declared = value.declared
    enter(node, value, port)
    if isinstance(port, Carried) and isinstance(declared, TensorType) and declared.rank is not None:
        # The file's type holds in every iteration, the outer value's type only at first.
        with suppress(Refused):
            value.type = join(declared, value.type)
    if not isinstance(port, Iteration) or not isinstance(declared, TensorType):
        return value
    # IR lets the number of the iteration be i32 and 1-D.
    if declared.rank is not None and declared.rank > 1:
        raise InvalidModelError(f"{where}: the number of an iteration is not {declared}")
    value.declared = value.type = TensorType(I64, ())
    seen = value
    if declared.element is not None and declared.element is not I64:
        seen = builder.op("Cast", seen, to=declared.element)
    if declared.rank == 1:
        seen = builder.op("Reshape", seen, builder.constant([1]))
    return seen


def _append(
    builder: Builder,
    layer: Layer,
    node: Node,
    bodies: tuple[Body, ...],
    repeats: dict[int, int] | None = None,
) -> Sequence[Value]:
    """Appends the node; its outputs, and an Identity for each that repeats another."""
    repeats = repeats or {}
    outputs = values_of_ports(layer.outputs)
    own = [value for index, value in enumerate(outputs) if index not in repeats]
    for body in bodies:
        for _, port in body.exits():
            if isinstance(port, Yield) and port.output is not None:
                # The ports of the bodies say the sizes of such an output.
                value = own[port.output]
                value.declared = value.type = without_sizes(value.declared)
    builder.node(node.op, node.inputs, own, {}, bodies, layer.given, extras_of(layer))
    for index, first in repeats.items():
        builder.node("Identity", [outputs[first]], [outputs[index]])
    return outputs
