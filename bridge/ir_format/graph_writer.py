"""Layers and edges of one graph, the top one or a body, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.errors import Unsupported
from bridge.ir_format.attributes import format_shape, format_static, format_value
from bridge.ir_format.names import UniqueNames, clean, join_names
from bridge.ir_format.text import attribute
from bridge.ir_format.weights import WeightsWriter
from bridge.neutral.builder import Target
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import TensorType, Type
from bridge.spelling import choose, spell
from bridge.vocabulary import ir_opset

TARGET = Target("ir")


@dataclass
class File:
    """What all graphs of a file share: the weights, and what cannot be written. Where a value of
    unknown element type came from IR (`dynamic_types`), its port stays dynamic."""

    weights: WeightsWriter
    dynamic_types: bool
    findings: list[Unsupported] = field(default_factory=list)
    ports: dict[tuple[Type, str], str] = field(default_factory=dict)


@dataclass(slots=True)
class _Spelled:
    """A node in IR's words."""

    node: Node
    type: str
    version: str
    inputs: list[Value]
    attributes: dict[str, str]


class GraphWriter:
    """Collects the text of a graph's layers and edges. `where` is the path of names down to the
    graph, `indent` that of its `<layers>`."""

    def __init__(self, file: File, graph: Graph, where: str, indent: str) -> None:
        self.file = file
        self.graph = graph
        self.where = where
        self.indent = indent
        self.tensor_names: dict[Value, list[str]] = {}
        self._claimed: dict[str, Value] = {}
        self._layers: list[str] = []
        self._edges: list[str] = []
        self._ports: dict[Value, tuple[int, int]] = {}
        self._spelled = [s for s in map(self._spell, graph.nodes) if s is not None]
        self._used = {value for spelled in self._spelled for value in spelled.inputs}
        self._used.update(graph.outputs)
        self._next_id = 0
        self._names = UniqueNames(node.name for node in graph.nodes)
        self._names_of = {
            s.node: self._names.take(s.node.name, "") if s.node.name else ""
            for s in self._spelled
            if s.type != "Const"
        }

    # Tensor names: inputs first, then what the outside asks for, then the rest.

    def claim_inputs(self) -> None:
        """Gives the graph's inputs their names."""
        for value in self.graph.inputs:
            self._claim(value)

    def claim_output(self, value: Value, name: str, otherwise: str) -> str:
        """Makes `name` one of a graph output's tensor names; another where it is taken."""
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

    def claim_others(self) -> None:
        """Gives all other values those of their names that are still free."""
        for spelled in self._spelled:
            for value in spelled.node.outputs:
                self._claim(value)

    def _claim(self, value: Value) -> None:
        names = self.tensor_names.setdefault(value, [])
        for name in map(clean, value.names):
            if name and name not in self._claimed:
                self._claimed[name] = value
                names.append(name)

    # Nodes in IR's words.

    def _spell(self, node: Node) -> _Spelled | None:
        extras = node.extras or {}
        if node.op == "Constant":
            return _Spelled(node, "Const", "opset1", [], {})
        if node.bodies:
            outer = [value for value in node.inputs if value is not None]
            return _Spelled(node, node.op, "", outer, extras.get("ir_attributes", {}))
        if "layer" in extras:
            type, version = extras["layer"]
            return _Spelled(node, type, version, _present(node.inputs), node.attributes)
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
            _present(inputs),
            {**extras.get("ir_attributes", {}), **texts},
        )

    def refuse(self, node: Node | None, why: str, value: Value | None = None) -> None:
        """Notes that a node, or a graph input, cannot be written."""
        what = node.op if node is not None else "graph input"
        name = node.name if node is not None else value.name if value is not None else ""
        self.file.findings.append(Unsupported(what, f'{self.where} / {what} "{name}"', why))

    # Layers.

    def parameter(self, value: Value, name: str = "", extras: Mapping[str, Any] = {}) -> int:  # noqa: B006
        """Appends a Parameter; its id."""
        type = value.type
        if not isinstance(type, TensorType) or type.element is None or type.element.ir is None:
            self.refuse(None, f"OpenVINO has no type for {type}", value)
            return -1
        data = {"shape": format_shape(type.shape), "element_type": type.element.ir}
        id = self._take_id()
        name = self._names.take(name or value.name, f"Parameter_{id}")
        self.layer(id, name, "Parameter", "opset1", data, [], [value], extras)
        return id

    def result(
        self,
        value: Value,
        name: str,
        output_names: str = "",
        extras: Mapping[str, Any] = {},  # noqa: B006
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
                    spelled.inputs, node.outputs, node.extras or {}, node=node,
                )  # fmt: skip

    def identify(self, node: Node, type: str) -> tuple[int, str]:
        """The id and the name of a node's layer."""
        id = self._take_id()
        return id, self._names_of.get(node) or self._names.take("", f"{type}_{id}")

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
        wanted = node.name if node is not None and node.name not in self._taken_by_nodes() else ""
        name = self._names.take(wanted, f"Const_{id}")
        extras = (node.extras if node is not None else None) or {}
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
        extras: Mapping[str, Any],
        *,
        further: str = "",
        before: Iterable[str] = (),
        after: Iterable[str] = (),
        node: Node | None = None,
    ) -> None:
        """Appends a layer and the edges to its inputs; `before` and `after` the ports stands what
        layers with bodies have there."""
        tab = self.indent + "\t\t"
        lines = self._layers
        lines.append(
            f'{self.indent}\t<layer id="{id}" name={attribute(name)} type={attribute(type)} '
            f"version={attribute(version)}{further}>\n"
        )
        if data:
            texts = " ".join(f"{key}={attribute(text)}" for key, text in data.items())
            lines.append(f"{tab}<data {texts} />\n")
        if extras.get("rt_info"):
            lines.append(f"{tab}<rt_info>{extras['rt_info']}</rt_info>\n")
        lines.extend(before)
        ports_info = extras.get("port_rt_info", {})
        if inputs:
            lines.append(f"{tab}<input>\n")
            for index, value in enumerate(inputs):
                self._edge(value, id, index, node)
                info = ports_info.get(("input", index), "")
                lines.append(self._port(index, value, "", info, node))
            lines.append(f"{tab}</input>\n")
        if outputs:
            lines.append(f"{tab}<output>\n")
            for index, value in enumerate(outputs):
                port = len(inputs) + index
                self._ports[value] = id, port
                names = self.tensor_names.get(value)
                text = f" names={attribute(join_names(names))}" if names else ""
                info = ports_info.get(("output", index), "")
                lines.append(self._port(port, value, text, info, node))
            lines.append(f"{tab}</output>\n")
        lines.extend(after)
        lines.append(f"{self.indent}\t</layer>\n")

    def text(self) -> list[str]:
        """The `<layers>` and `<edges>` elements."""
        tab = self.indent
        return [
            f"{tab}<layers>\n", *self._layers, f"{tab}</layers>\n",
            f"{tab}<edges>\n", *self._edges, f"{tab}</edges>\n",
        ]  # fmt: skip

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _edge(self, value: Value, layer: int, port: int, node: Node | None) -> None:
        source = self._ports.get(value)
        if source is None:
            # Its producer is among the findings.
            return
        self._edges.append(
            f'{self.indent}\t<edge from-layer="{source[0]}" from-port="{source[1]}" '
            f'to-layer="{layer}" to-port="{port}" />\n'
        )

    def _port(self, id: int, value: Value, names: str, rt_info: str, node: Node | None) -> str:
        rest = self._port_type(value, node)
        tab = self.indent + "\t\t\t"
        if not rest and not rt_info:
            return f'{tab}<port id="{id}" precision="{self._precision(value, node)}"{names} />\n'
        info = f"{tab}\t<rt_info>{rt_info}</rt_info>\n" if rt_info else ""
        precision = self._precision(value, node)
        return f'{tab}<port id="{id}" precision="{precision}"{names}>\n{rest}{info}{tab}</port>\n'
