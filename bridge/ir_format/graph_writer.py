"""Layers and edges of one graph, the top one or a body, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bridge.errors import Unsupported
from bridge.ir_format.attributes import format_static, format_value
from bridge.ir_format.names import UniqueNames, is_numbered, join_names
from bridge.ir_format.provenance import TOP, dump as dump_provenance
from bridge.ir_format.text import Text, attribute
from bridge.ir_format.weights import WeightsWriter
from bridge.neutral.builder import Target
from bridge.neutral.extras import Provenance
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import Interval, Shape, TensorType, Type
from bridge.neutral.xml_names import clean
from bridge.operators.ir_texts import format_shape
from bridge.operators.spelling import choose, spell
from bridge.vocabulary import ir_opset

TARGET = Target("ir")


@dataclass(eq=False)
class WrittenIr:
    """The shared state of all graphs of a file.

    It has the weights, and the findings that cannot be written. With `dynamic_types`, a value of
    unknown element type came from IR, and its port stays dynamic. `bodies` are the written bodies,
    in order. `numbered` has the last number for each repeated layer name; `named` are layer names
    from the model that look like made-up ones. `given` are the names of all nodes. `formers` maps
    layers to their original ONNX nodes, by the key of the body (TOP for the graph itself) and by
    name. `ports` are texts of ports by indent and type."""

    weights: WeightsWriter
    dynamic_types: bool
    given: frozenset[str]
    bodies: list[Graph] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    numbered: dict[str, int] = field(default_factory=dict)
    formers: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    findings: list[Unsupported] = field(default_factory=list)
    ports: dict[str, dict[Type, tuple[str, str]]] = field(default_factory=dict)


@dataclass(eq=False)
class _Spelled:
    """A node in IR's words."""

    node: Node
    type: str
    version: str
    inputs: list[Value]
    attributes: dict[str, str]


class GraphWriter:
    """Collects the text of a graph's layers and edges. `where` is the path of names down to the
    graph, `indent` the indent of its `<layers>`, `key` names it in records."""

    def __init__(
        self, file: WrittenIr, graph: Graph, where: str, indent: str, key: str = TOP
    ) -> None:
        self.file = file
        self.graph = graph
        self.where = where
        self.indent = indent
        self.key = key
        self.tensor_names: dict[Value, list[str]] = {}
        self._claimed: dict[str, Value] = {}
        self._layers: Text = []
        self._edges: Text = []
        self._ports: dict[Value, tuple[int, int]] = {}
        self._places: dict[Value, tuple[str, int]] = {}
        self._stored: dict[object, str] = {}
        self._spelled = [s for s in map(self._spell, graph.nodes) if s is not None]
        self._used = {value for spelled in self._spelled for value in spelled.inputs}
        self._used.update(graph.outputs)
        self._next_id = 0
        self._port_indent = indent + "\t\t\t"
        self._types = file.ports.setdefault(indent, {})
        self._names = UniqueNames(file.given, file.numbered)
        self._names_of: dict[Node, str] = {}

    def claim_names(self, asked: Sequence[str] = ()) -> list[str]:
        """Settles the tensor names, which are unique in a graph. Inputs come first, then outputs
        with the names they are `asked` for by, then the rest. Returns the names of the outputs."""
        for value in self.graph.inputs:
            self._claim(value)
        outputs = [
            self._claim_output(value, name or value.name, f"output_{index}")
            for index, (value, name) in enumerate(zip(self.graph.outputs, asked, strict=False))
        ]
        for spelled in self._spelled:
            for value in spelled.node.outputs:
                self._claim(value)
        return outputs

    def _claim(self, value: Value) -> None:
        names = self.tensor_names.setdefault(value, [])
        for name in map(clean, value.names):
            if name and name not in self._claimed:
                self._claimed[name] = value
                names.append(name)

    def _claim_output(self, value: Value, name: str, otherwise: str) -> str:
        base = name = clean(name) or otherwise
        number = 0
        while self._claimed.get(name, value) is not value:
            number += 1
            name = f"{base}_{number}"
        names = self.tensor_names.setdefault(value, [])
        if name not in names:
            self._claimed[name] = value
            names.append(name)
        return name

    def _spell(self, node: Node) -> _Spelled | None:
        extras = node.extras or {}
        if node.op == "Constant":
            return _Spelled(node, "Const", "opset1", [], {})
        if node.bodies:
            return _Spelled(node, node.op, "", node.operands, {})
        if "layer" in extras:
            type, version = extras["layer"]
            return _Spelled(node, type, version, node.operands, node.attributes)
        spelling, why = choose(node, TARGET)
        if spelling is None:
            self.refuse(node, why)
            return None
        inputs, attributes = spell(node, spelling)
        if None in inputs:
            self.refuse(node, f"IR cannot leave out its input {inputs.index(None)}")
            return None
        try:
            texts = {name: format_value(value) for name, value in attributes.items()}
        except TypeError as error:
            self.refuse(node, str(error))
            return None
        return _Spelled(
            node,
            spelling.type,
            ir_opset(spelling.version),
            [value for value in inputs if value is not None],
            texts,
        )

    def refuse(self, node: Node | None, why: str, value: Value | None = None) -> None:
        """Notes that a node, or a graph input, cannot be written."""
        what = node.op if node is not None else "graph input"
        name = node.name if node is not None else value.name if value is not None else ""
        self.file.findings.append(Unsupported(what, f'{self.where} / {what} "{name}"', why))

    def parameter(self, value: Value, extras: Mapping[str, Any] | None = None) -> int:
        """Appends a Parameter; its id. `extras` may hold the `name` of its layer."""
        type = value.type
        id = self._take_id()
        element = None
        if isinstance(type, TensorType):
            element = type.element.ir if type.element else "dynamic"
        if element is None or (element == "dynamic" and not self.file.dynamic_types):
            self.refuse(None, f"OpenVINO has no type for {type}", value)
            return id
        data = {"shape": format_shape(_bounded(value)), "element_type": element}
        extras = extras or {}
        name = self._names.take(extras.get("name") or value.name, f"Parameter_{id}")
        self.layer(id, name, "Parameter", "opset1", data, [], [value], extras)
        return id

    def result(
        self,
        value: Value,
        name: str,
        output_names: str = "",
        extras: Mapping[str, Any] | None = None,
    ) -> int:
        """Appends a Result; its id."""
        id = self._take_id()
        name = self._names.take(name, f"Result_{id}")
        further = f" output_names={attribute(output_names)}" if output_names else ""
        self.layer(id, name, "Result", "opset1", {}, [value], [], extras, further=further)
        return id

    def nodes(self) -> None:
        """Appends the graph's nodes, without Constants that only attributes hold here."""
        from bridge.ir_format.bodies_writer import write_if, write_loop

        # A Constant that was made for a node may have its name; the node keeps it.
        for spelled in self._spelled:
            node = spelled.node
            if node.op != "Constant" and node.name:
                self._names_of[node] = self._given(node.name)
        for spelled in self._spelled:
            node = spelled.node
            if node.op == "Constant":
                if node.outputs[0] in self._used:
                    self.constant(node.attributes["value"], node.outputs[0], node)
            elif node.op == "If":
                write_if(self, node, spelled.attributes)
            elif node.op == "Loop":
                write_loop(self, node, spelled.attributes)
            else:
                id, name = self.identify(node, spelled.type)
                self.layer(
                    id, name, spelled.type, spelled.version, spelled.attributes,
                    spelled.inputs, node.outputs, node.extras, node=node,
                )  # fmt: skip

    def identify(self, node: Node, type: str) -> tuple[int, str]:
        """The id and the name of a node's layer."""
        id = self._take_id()
        return id, self._named(self._names_of.get(node, ""), f"{type}_{id}")

    def _given(self, name: str) -> str:
        """The name of a layer that was given one."""
        taken = self._names.take(name, "")
        if is_numbered(taken) and taken == name:
            self.file.named.append(name)
        return taken

    def _named(self, given: str, otherwise: str) -> str:
        """The name of a layer, which was given one or was not."""
        return given or self._names.take("", otherwise)

    def constant(self, tensor: Tensor, value: Value, node: Node | None = None) -> None:
        """Appends a Const that makes `value`."""
        if tensor.element.ir is None:
            self.refuse(node, f"OpenVINO has no element type {tensor.element}", value)
            return
        offset, size = self.file.weights.place(tensor)
        data = {
            "element_type": tensor.element.ir,
            "shape": format_static(tensor.shape),
            "offset": str(offset),
            "size": str(size),
        }
        id = self._take_id()
        given = self._given(node.name) if node is not None and node.name else ""
        name = self._named(given, f"Const_{id}")
        extras = node.extras if node is not None else None
        self._stored[tensor.storage] = name
        self.layer(id, name, "Const", "opset1", data, [], [value], extras, node=node)

    def layer(
        self,
        id: int,
        name: str,
        type: str,
        version: str,
        data: Mapping[str, str],
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        extras: Mapping[str, Any] | None,
        *,
        further: str = "",
        before: Text | None = None,
        after: Text | None = None,
        node: Node | None = None,
    ) -> None:
        """Appends a layer and the edges to its inputs. `further` are attributes of the layer
        itself. `before` and `after` are texts around the ports, in layers with bodies."""
        extras = extras or {}
        tab = self.indent + "\t\t"
        lines = [
            f'{self.indent}\t<layer id="{id}" name={attribute(name)} {_kind(type, version)}'
            f"{further}>\n"
        ]
        if data:
            texts = " ".join(f"{key}={attribute(text)}" for key, text in data.items())
            lines.append(f"{tab}<data {texts} />\n")
        if "rt_info" in extras:
            lines.append(f"{tab}<rt_info>{extras['rt_info']}</rt_info>\n")
        if before:
            self._layers += ("".join(lines), before)
            lines.clear()
        info = extras.get("port_rt_info", {})
        if inputs:
            lines.append(f"{tab}<input>\n")
            for index, value in enumerate(inputs):
                self._edge(value, id, index)
                own = info.get(("input", index)) if info else None
                lines.append(self._port(index, value.type, "", own))
            lines.append(f"{tab}</input>\n")
        if outputs:
            lines.append(f"{tab}<output>\n")
            for port, value in enumerate(outputs, len(inputs)):
                self._check(value, node)
                self._ports[value] = id, port
                self._places[value] = name, port - len(inputs)
                names = self.tensor_names.get(value)
                text = f" names={attribute(join_names(names))}" if names else ""
                own = info.get(("output", port - len(inputs))) if info else None
                lines.append(self._port(port, value.type, text, own))
            lines.append(f"{tab}</output>\n")
        if after:
            self._layers += ("".join(lines), after)
            lines.clear()
        lines.append(f"{self.indent}\t</layer>\n")
        self._layers.append("".join(lines))
        if "provenance" in extras:
            self._record(name, extras["provenance"])

    def _record(self, name: str, provenance: Provenance) -> None:
        """Notes which node of ONNX a layer stands for."""
        said = dump_provenance(provenance, self._places.get, self._stored)
        if said is not None:
            self.file.formers.setdefault(self.key, {})[name] = said

    def text(self) -> Text:
        """The `<layers>` and `<edges>` elements."""
        tab = self.indent
        return [
            f"{tab}<layers>\n", self._layers, f"{tab}</layers>\n",
            f"{tab}<edges>\n", self._edges, f"{tab}</edges>\n",
        ]  # fmt: skip

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _edge(self, value: Value, layer: int, port: int) -> None:
        source = self._ports.get(value)
        if source is not None:  # else the node that makes it is among the findings
            self._edges.append(
                f'{self.indent}\t<edge from-layer="{source[0]}" from-port="{source[1]}" '
                f'to-layer="{layer}" to-port="{port}" />\n'
            )

    def _check(self, value: Value, node: Node | None) -> None:
        """Notes a used output whose type IR does not have."""
        type = value.type
        if isinstance(type, TensorType) and type.element and type.element.precision:
            return
        if value not in self._used:
            return
        if not isinstance(type, TensorType):
            self.refuse(node, f"its output is no tensor but {type}", value)
        elif type.element is None:
            if not self.file.dynamic_types:
                self.refuse(node, "the element type of its output is not known", value)
        elif type.element.precision is None:
            self.refuse(node, f"OpenVINO has no element type {type.element}", value)

    def _port(self, id: int, type: Type, names: str, rt_info: str | None) -> str:
        precision, dims = self._types.get(type) or self._type_text(type)
        tab = self._port_indent
        if rt_info:
            dims += f"{tab}\t<rt_info>{rt_info}</rt_info>\n"
        start = f'{tab}<port id="{id}" precision="{precision}"{names}'
        return f"{start}>\n{dims}{tab}</port>\n" if dims else f"{start} />\n"

    def _type_text(self, type: Type) -> tuple[str, str]:
        """The precision of a port and its dimensions, which are but a hint: symbols and intervals
        become -1."""
        precision, dims = "dynamic", ""
        if isinstance(type, TensorType):
            precision = (type.element and type.element.precision) or precision
            for dim in type.shape or ():
                size = dim if isinstance(dim, int) else -1
                dims += f"{self._port_indent}\t<dim>{size}</dim>\n"
        self._types[type] = precision, dims
        return precision, dims


@lru_cache
def _kind(type: str, version: str) -> str:
    """The attributes of a layer that say which operator it is."""
    return f"type={attribute(type)} version={attribute(version)}"


def _bounded(value: Value) -> Shape:
    """The shape of an input, with the declared bounds of sizes that have symbols."""
    declared = value.declared.shape if isinstance(value.declared, TensorType) else None
    if value.shape is None or declared is None or len(declared) != len(value.shape):
        return value.shape
    pairs = zip(value.shape, declared, strict=True)
    return tuple(
        bound if isinstance(dim, str) and isinstance(bound, Interval) else dim
        for dim, bound in pairs
    )
