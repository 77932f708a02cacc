"""Reads OpenVINO IR, versions 10 and 11, into the neutral graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import InvalidModelError, Unsupported, UnsupportedError
from bridge.files import bytes_in, stamp_of
from bridge.ir_format.attributes import parse
from bridge.ir_format.bodies_reader import read_if, read_loop
from bridge.ir_format.document import select
from bridge.ir_format.layers import Layer, arrange, number, read_net
from bridge.ir_format.names import split_names
from bridge.ir_format.origin import Origin, load as load_origin
from bridge.ir_format.provenance import TOP, ProvenanceTable
from bridge.ir_format.rt_info import keep_about_model, read_rt_info
from bridge.ir_format.symbols import SYMBOLS, restore as restore_symbols
from bridge.ir_format.values import (
    edge_layer,
    edited_shape,
    extras_of,
    parameter,
    values_of_ports,
)
from bridge.ir_format.weights import WeightsReader
from bridge.limits import budget
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.inference.constraints import contradiction
from bridge.neutral.signature import impropriety
from bridge.neutral.types import Dim, meet
from bridge.operators import BREAKS, Refused, reader, unforeseen
from bridge.operators.ir_texts import parse_bool
from bridge.operators.reading import NotedAttributes, Unread, applied, without_effect
from bridge.operators.spelling import takes, unspell
from bridge.passes.inputs import override_shapes
from bridge.vocabulary import REQUIRED, Spelling, ir_rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

VERSIONS = (10, 11)


def read(xml: Path, weights: Path | None = None) -> Model:
    """The model in an `.xml` file and the `.bin` beside it (or `weights`). Constants stay in the
    `.bin` until somebody asks for them. InvalidModelError if it is no IR or contradicts itself.
    """
    try:
        stamps = {str(xml): stamp_of(xml)}
    except OSError as error:
        raise InvalidModelError(f"{xml}: cannot be read: {error.strerror}") from error
    net, layers, edges = read_net(xml)
    if not select(net, "layers"):
        raise InvalidModelError(f"{xml}: is no OpenVINO IR: its <net> has no <layers>")
    version = _version(net, xml, layers)
    where = net.get("name") or xml.stem
    entries, metadata = read_rt_info(net)
    keep_about_model(net, metadata)
    origin = load_origin(metadata)
    weights_reader = WeightsReader(weights or xml.with_suffix(".bin"), stamps)
    reader = IrReader(version, weights_reader, origin)
    layers = arrange(layers, edges, where, reader.notes)
    budget().allow(size=bytes_in(xml))
    parameters = {x.id: parameter(x, where) for x in layers if x.type == "Parameter"}
    edited = _as_they_were(layers, parameters)
    symbols = SYMBOLS.take(metadata) or {}
    for value in parameters.values():
        restore_symbols(value, value.name, symbols)
    graph = Graph(list(parameters.values()), name=net.get("name", ""))
    results = reader.build(graph, layers, parameters, where)
    graph.outputs = list(results.values())
    by_id = {layer.id: layer for layer in layers}
    graph.output_names = _output_names(graph, [by_id[id] for id in results], by_id, version)
    for value, name in zip(graph.outputs, graph.output_names, strict=True):
        restore_symbols(value, name, symbols)
    model = Model(
        graph,
        "ir",
        metadata=metadata,
        extras={
            "ir": {
                "rt_info": entries,
                "parameters": {value: edge_layer(by_id[id]) for id, value in parameters.items()},
                "results": [edge_layer(by_id[id]) for id in results],
            }
        },
        files=stamps,
        notes=reader.notes,
    )
    origin.give(model, reader.bodies)
    if edited or reader.has_most_rows:
        override_shapes(model, edited)
    return model


def _version(net: XmlElement, xml: Path, layers: list[Layer]) -> int:
    """The version of an IR. InvalidModelError for a version that Bridge does not read, and for a
    file that is not a model any more."""
    version = number(net, "version", str(xml))
    if version not in VERSIONS:
        older = "OpenVINO has not read older ones since 2021.1; convert the original model anew"
        raise InvalidModelError(
            f"{xml}: is IR version {version}; Bridge reads {VERSIONS[0]} and {VERSIONS[1]}"
            + (f". {older}" if version < VERSIONS[0] else "")
        )
    if any("execOrder" in layer.data for layer in layers):
        raise InvalidModelError(
            f"{xml}: is the runtime form of a compiled model (get_runtime_model); convert the "
            "model that was compiled"
        )
    return version


def _as_they_were(
    layers: Sequence[Layer], parameters: Mapping[int, Value]
) -> dict[str, tuple[Dim, ...]]:
    """Gives edited Parameters the shapes for which all layers were inferred. Returns their edited
    shapes, by name, for which OpenVINO infers the layers anew."""
    edited: dict[str, tuple[Dim, ...]] = {}
    for layer in layers:
        shape = edited_shape(layer) if layer.type == "Parameter" else None
        if shape is not None:
            value = parameters[layer.id]
            value.type = value.declared = layer.outputs[0].type
            edited[value.name] = shape
    return edited


def _output_names(
    graph: Graph, results: list[Layer], layers: dict[int, Layer], version: int
) -> list[str]:
    """The name of each output, distinct. All names that a Result answers to become names of its
    value too; of several, one that no graph input has is preferred."""
    taken = {name for value in graph.inputs for name in value.names}
    names: list[str] = []
    given: set[str] = set()
    for value, result in zip(graph.outputs, results, strict=True):
        source, index = result.sources[0]
        producer = layers[source]
        own = split_names(result.output_names)
        value.names.extend(name for name in own if name not in value.names)
        candidates = [*own, *producer.outputs[index].names]
        if version == 10:
            # Before version 11 OpenVINO named an output after the layer that makes it.
            suffix = f".{index}" if len(producer.outputs) > 1 else ""
            candidates.append(producer.name + suffix)
        candidates.append(result.name)
        preferred = [name for name in own if name not in taken]
        free = (name for name in (*preferred, *candidates) if name and name not in given)
        names.append(next(free, ""))
        given.add(names[-1])
    return names


class IrReader:
    """The shared state of all graphs of one file.

    It has the IR version, the weights, the record of the original model, the bodies in order, the
    depth of the current graph and its key in records, and notes for the report. `has_most_rows`
    tells that some declared sizes are only upper bounds."""

    def __init__(self, version: int, weights: WeightsReader, origin: Origin) -> None:
        self.version = version
        self.weights = weights
        self.origin = origin
        self.bodies: list[Graph] = []
        self.key = TOP
        self.depth = 0
        self.notes: list[str] = []
        self.has_most_rows = False

    def build(
        self, graph: Graph, layers: list[Layer], parameters: dict[int, Value], where: str
    ) -> dict[int, Value]:
        """Fills `graph.nodes` from layers, whose Parameters have the given values; the value of
        each Result layer by its id, in file order."""
        values: dict[int, Sequence[Value]] = {id: (v,) for id, v in parameters.items()}
        formers = ProvenanceTable(self.origin.formers.get(self.key, {}))
        results: dict[int, Value] = {}
        for layer in layers:
            if layer.type in _ATTRIBUTES and not layer.data.keys() <= _ATTRIBUTES[layer.type]:
                name = min(layer.data.keys() - _ATTRIBUTES[layer.type])
                why = str(Unread(f"attribute `{name}`", layer.type))
                raise UnsupportedError("any format", [Unsupported(layer.type, where, why)])
            if layer.type == "Parameter":
                formers.know(layer.name, values[layer.id])
                continue
            layer.given = self.origin.given(layer.name, layer.type, layer.id)
            inputs = []
            for id, index in layer.sources:
                made = values.get(id, ())
                if index >= len(made):
                    raise InvalidModelError(f"{where} / {layer}: layer {id} has no output {index}")
                inputs.append(made[index])
            if layer.type == "Result":
                if len(inputs) != 1:
                    raise InvalidModelError(f"{where} / {layer}: nothing is connected to it")
                results[layer.id] = inputs[0]
            else:
                start = len(graph.nodes)
                values[layer.id] = self._layer(graph.nodes, layer, inputs, where)
                formers.know(layer.name, values[layer.id])
                for node in graph.nodes[start:]:
                    if why := impropriety(node) or contradiction(node):
                        raise InvalidModelError(f"{where} / {layer}: {why}")
        formers.note()
        _drop_unused_constants(graph, results)
        return results

    def _layer(
        self, nodes: list[Node], layer: Layer, inputs: list[Value], where: str
    ) -> Sequence[Value]:
        """Appends the nodes of one layer; the values of its outputs."""
        builder = Builder(nodes, layer.given)
        self.has_most_rows |= (layer.type, layer.version) in _MOST_ROWS
        if layer.type == "Const":
            tensor = self.weights.tensor(layer, where)
            names = [name for port in layer.outputs[:1] for name in port.names]
            value = builder.tensor(tensor, names, layer.given)
            assert value.producer is not None
            value.producer.extras = extras_of(layer)
            return [value]
        if layer.type == "If":
            return read_if(self, builder, layer, inputs, where)
        if layer.type in ("Loop", "TensorIterator"):
            return read_loop(self, builder, layer, inputs, where)
        why = ""
        try:
            made = _by_rule(builder, layer, inputs, where)
            if made is not None:
                return made
        except Refused as refusal:
            why = str(refusal)
        for operator, spelling in ir_rows(layer.type, layer.version):
            attributes, further = _attributes(layer, spelling, where)
            if attributes is None:
                continue
            if unread := _unread(layer, spelling, further, len(inputs)):
                why = why or unread
                continue
            outputs = values_of_ports(layer.outputs)
            try:
                unspell(
                    builder, operator, spelling, inputs, attributes, outputs, layer.given,
                    extras_of(layer, further),
                )  # fmt: skip
            except KeyError as error:
                raise InvalidModelError(f"{where} / {layer}: {error.args[0]}") from error
            return outputs
        return _raw(nodes, layer, inputs, where, why)


_ATTRIBUTES: dict[str, frozenset[str]] = {
    "Parameter": frozenset(("shape", "element_type")),
    "Const": frozenset(("element_type", "offset", "shape", "size")),
    **dict.fromkeys(("Result", "If", "Loop", "TensorIterator"), frozenset()),
}
"""The attributes of layers that have no row, and no rule."""

_MOST_ROWS = {("NonMaxSuppression", f"opset{version}") for version in (1, 3, 4)}
"""Layers whose port declares the largest possible number of rows. OpenVINO gives the real number,
and infers later layers anew."""


def _drop_unused_constants(graph: Graph, results: dict[int, Value]) -> None:
    """Drops the Constants that bodies have taken over or that nothing ever used."""
    used = {value for node in graph.nodes for value in node.inputs}
    used.update(results.values())
    graph.nodes = [n for n in graph.nodes if n.op != "Constant" or n.outputs[0] in used]


class _Attributes(NotedAttributes):
    """The attributes of a layer for a rule; a missing one is an error of the file."""

    def __init__(self, layer: Layer, where: str) -> None:
        super().__init__(layer.data)
        self._where = f"{where} / {layer}"

    def __missing__(self, name: str) -> str:
        raise InvalidModelError(f"{self._where}: lacks the attribute {name}")


def _by_rule(builder: Builder, layer: Layer, inputs: list[Value], where: str) -> list[Value] | None:
    """The outputs that the rule for a layer gives; None if no rule applies."""
    opset = layer.version.removeprefix("opset")
    rule = reader("ir", layer.type, int(opset) if opset.isdigit() else 0)
    if rule is None:
        return None
    node = Node(
        layer.type, list(inputs), values_of_ports(layer.outputs), _Attributes(layer, where), (),
        layer.given,
    )  # fmt: skip
    start = len(builder.nodes)
    try:
        with builder:
            made = applied(rule, builder, node, dict)
    except Refused:
        del builder.nodes[start:]
        raise
    except ValueError as error:
        raise InvalidModelError(f"{where} / {layer}: {error}") from error
    except BREAKS as error:
        raise InvalidModelError(f"{where} / {layer}: {unforeseen(error)}") from error
    if made is None:
        return None
    values: list[Value] = []
    for port, value in zip(
        layer.outputs, [made] if isinstance(made, Value) else made, strict=False
    ):
        if value is None:
            value = Value(port.type)
        value.names.extend(name for name in port.names if name not in value.names)
        value.declared = meet(value.declared, port.type)
        value.type = meet(value.type, port.type)
        values.append(value)
    if layer.rt_info and len(builder.nodes) > start and builder.nodes[-1].extras is None:
        builder.nodes[-1].extras = {"rt_info": layer.rt_info}
    return values


def _unread(layer: Layer, spelling: Spelling, further: dict[str, str], inputs: int) -> str:
    """The reason against a spelling without place for an attribute or an input; "" if it has."""
    for name, text in further.items():
        if not without_effect(layer.type, name, text, {}):
            return str(Unread(f"attribute `{name}`", layer.type))
    if not takes(spelling, inputs):
        return str(Unread(f"input {len(spelling.inputs)}", layer.type))
    return ""


def _attributes(
    layer: Layer, spelling: Spelling, where: str
) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """The attributes by a spelling, None if its fixed ones differ; and the missing ones."""
    further = dict(layer.data)
    for name, value in spelling.fixed.items():
        text = further.pop(name, None)
        if text is not None and not _is(text, value):
            return None, further
    attributes: dict[str, Any] = {}
    for spelled in (*spelling.attributes.values(), *spelling.as_attributes.values()):
        for name in spelled.names:
            text = further.pop(name, None)
            if text is None:
                if spelled.default is REQUIRED:
                    raise InvalidModelError(f"{where} / {layer}: lacks the attribute {name}")
                continue
            try:
                value = parse(text, spelled.type)
                if value != () or spelled.default is not None or len(spelled.names) > 1:
                    attributes[name] = value
            except ValueError as error:
                raise InvalidModelError(f"{where} / {layer}: {name}: {error}") from None
    return attributes, further


def _is(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return parse_bool(text) == value
    if isinstance(value, int | float):
        return float(text) == value
    return text == str(value)


def _raw(
    nodes: list[Node], layer: Layer, inputs: list[Value], where: str, why: str
) -> Sequence[Value]:
    """A layer that Bridge does not know, kept as it is: IR gets it back, ONNX cannot have it."""
    if layer.parts:
        raise InvalidModelError(
            f"{where} / {layer}: Bridge knows no layer of this type, and cannot keep its "
            f"<{layer.parts[0].tag}>"
        )
    extras = extras_of(layer) or {}
    extras["layer"] = (layer.type, layer.version)
    if why:
        extras["why"] = why
    outputs = values_of_ports(layer.outputs)
    nodes.append(
        Node(
            f"{layer.version}::{layer.type}", list(inputs), outputs, dict(layer.data), (),
            layer.given, extras,
        )
    )  # fmt: skip
    return outputs
