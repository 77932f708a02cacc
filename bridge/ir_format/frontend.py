"""Reads OpenVINO IR, versions 10 and 11, into the neutral graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.errors import InvalidModelError, amount
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
from bridge.operators import BREAKS, Refused, Rule, reader, unforeseen
from bridge.operators.reading import NotedAttributes, Unread, applied, without_effect
from bridge.operators.spelling import takes, unspell
from bridge.passes.inputs import override_shapes
from bridge.vocabulary import REQUIRED, SpelledAttribute, Spelling, ir_rows, layer_attributes

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
    reader.tell_ignored(model)
    origin.give(model, reader.bodies)
    if edited or reader.has_most_rows:
        override_shapes(model, edited)
    return model


def _version(net: XmlElement, xml: Path, layers: list[Layer]) -> int:
    """The version of an IR. InvalidModelError for a version that Bridge does not read, and for a
    file that is not a model any more."""
    version = number(net, "version", str(xml))
    if version not in VERSIONS:
        older = (
            "OpenVINO has read no older ones since 2021.1, and no release brings them to a newer "
            "version: convert the original model anew (one of Caffe, MXNet or Kaldi with "
            "openvino-dev 2023.3), or take a newer IR of it from the Open Model Zoo"
        )
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
    depth of the current graph and its key in records, notes for the report, and the number of
    ignored attributes by name and type of layer. `has_most_rows` tells that some declared sizes are
    only upper bounds."""

    def __init__(self, version: int, weights: WeightsReader, origin: Origin) -> None:
        self.version = version
        self.weights = weights
        self.origin = origin
        self.bodies: list[Graph] = []
        self.key = TOP
        self.depth = 0
        self.notes: list[str] = []
        self.ignored = Counter[tuple[str, str]]()
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
            if layer.type in _ATTRIBUTES:
                self._ignore(layer, layer.data.keys() - _ATTRIBUTES[layer.type])
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
        return self._operator(builder, layer, inputs, where)

    def _operator(
        self, builder: Builder, layer: Layer, inputs: list[Value], where: str
    ) -> Sequence[Value]:
        """Appends the nodes of a layer by a rule or a row, or the layer as it is."""
        rows, rule = ir_rows(layer.type, layer.version), _rule(layer)
        if rule is None and not rows:
            return _raw(builder.nodes, layer, inputs, where, "")
        table = layer_attributes(layer.type, layer.version)
        unknown = layer.data.keys() - table
        if unknown and not layer.version.startswith("opset"):  # Its extension may read them.
            why = str(Unread(f"attribute `{min(unknown)}`", layer.type))
            return _raw(builder.nodes, layer, inputs, where, why)
        given = _given(layer, table, where)
        why = ""
        try:
            made = None if rule is None else _by_rule(rule, builder, layer, inputs, given, where)
            if made is not None:
                self._ignore(layer, unknown)
                return made
        except Refused as refusal:
            why = str(refusal)
        for operator, spelling in rows:
            attributes = _fitting(given, spelling, f"{where} / {layer}")
            if attributes is None:
                continue
            if unread := _unread(layer, spelling, given, len(inputs)):
                why = why or unread
                continue
            outputs = values_of_ports(layer.outputs)
            try:
                unspell(
                    builder, operator, spelling, inputs, attributes, outputs, layer.given,
                    extras_of(layer),
                )  # fmt: skip
            except KeyError as error:
                raise InvalidModelError(f"{where} / {layer}: {error.args[0]}") from error
            self._ignore(layer, unknown)
            return outputs
        return _raw(builder.nodes, layer, inputs, where, why)

    def _ignore(self, layer: Layer, names: Iterable[str]) -> None:
        """Counts attributes that the layer's specification does not have."""
        for name in names:
            if not without_effect(layer.type, name, layer.data[name], {}):
                self.ignored[name, layer.type] += 1

    def tell_ignored(self, model: Model) -> None:
        """Notes on a model the attributes that were ignored."""
        if not self.ignored:
            return
        told = amount(self.ignored.total(), "attribute")
        model.notes.append(f"{told} that OpenVINO's reader ignores left out")
        each = (f"{name} of {type} ({n})" for (name, type), n in sorted(self.ignored.items()))
        model.details.append(f"left out: {', '.join(each)}")


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

    def __init__(self, attributes: dict[str, Any], where: str) -> None:
        super().__init__(attributes)
        self._where = where

    def __missing__(self, name: str) -> str:
        raise InvalidModelError(f"{self._where}: lacks the attribute {name}")


def _rule(layer: Layer) -> Rule | None:
    opset = layer.version.removeprefix("opset")
    return reader("ir", layer.type, int(opset) if opset.isdigit() else 0)


def _by_rule(
    rule: Rule,
    builder: Builder,
    layer: Layer,
    inputs: list[Value],
    given: dict[str, Any],
    where: str,
) -> list[Value] | None:
    """The outputs that a rule gives for a layer; None if it leaves the layer to its rows."""
    table = layer_attributes(layer.type, layer.version)
    defaults = {name: it.default for name, it in table.items() if it.default is not REQUIRED}
    attributes = _Attributes({**defaults, **given}, f"{where} / {layer}")
    node = Node(
        layer.type, list(inputs), values_of_ports(layer.outputs), attributes, (), layer.given
    )
    start = len(builder.nodes)
    try:
        with builder:
            made = applied(rule, builder, node, lambda: defaults)
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


def _given(layer: Layer, table: dict[str, SpelledAttribute], where: str) -> dict[str, Any]:
    """The values of a layer's attributes that its specification has."""
    found: dict[str, Any] = {}
    for name, text in layer.data.items():
        if name not in table:
            continue
        try:
            value = parse(text, table[name].type, table[name].choices)
        except ValueError as error:
            raise InvalidModelError(f"{where} / {layer}: {name}: {error}") from None
        if value is not None:
            found[name] = value
    return found


def _unread(layer: Layer, spelling: Spelling, given: dict[str, Any], inputs: int) -> str:
    """The reason against a spelling without place for an attribute or an input; "" if it has."""
    if unread := given.keys() - spelling.names:
        return str(Unread(f"attribute `{min(unread)}`", layer.type))
    if not takes(spelling, inputs):
        return str(Unread(f"input {len(spelling.inputs)}", layer.type))
    return ""


def _fitting(given: dict[str, Any], spelling: Spelling, where: str) -> dict[str, Any] | None:
    """The attributes for a spelling; None if its fixed ones differ. An empty list counts as absent
    if the attribute may be so. InvalidModelError if a required one is missing."""
    if any(given.get(name, value) != value for name, value in spelling.fixed.items()):
        return None
    attributes: dict[str, Any] = {}
    for spelled in (*spelling.attributes.values(), *spelling.as_attributes.values()):
        for name in spelled.names:
            value = given.get(name)
            if value is None and spelled.default is REQUIRED:
                raise InvalidModelError(f"{where}: lacks the attribute {name}")
            if value is not None and (value != () or spelled.default is not None):
                attributes[name] = value
    return attributes


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
