"""The outline of a model for pictures and pages: its Ifs and Loops, their ports, and their purpose.

The outline is made of lists and dictionaries, so that a page can carry it as JSON. Names are in one
table, each with a short form; the outline refers to them by their place in it.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bridge.neutral.expression import expression
from bridge.neutral.graph import (
    Body,
    Graph,
    Model,
    Node,
    Value,
    names_of_outputs,
    sizes_of_constants,
)
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, InputPort, OutputPort, Sliced, Stacked, Yield
from bridge.records.entry import Json
from bridge.show.short import short, short_type

_NO_LIMIT = 1 << 31
"""Constant trip counts from this one on mean "no limit"."""


def outline(model: Model, file: str, layers: Mapping[str, str] | None = None) -> Json:
    """The outline of a model. `layers` are those of an IR (see `layers_with_bodies`).

    `nodes` holds the Ifs and Loops, outer ones before inner ones. `top` has the Ifs and Loops of
    the top graph, by their place in `nodes`; the `nodes` of each body do the same. `site` is the
    number of an If among the Ifs, or of a Loop among the Loops, as in `ifs` and `loops` in a
    check's JSON. `layer` is the layer of the IR. Ports are lists: a name, a type, the source or
    destination in words (`#` stands for a name), and its maker, in full and in short. `holds` are
    the other nodes of a body, without constants: operator, name, inputs, outputs with their types.
    A model without control flow has those of the top graph.
    """
    return _Outline(model, layers or {}).made(file)


def empty(file: str) -> Json:
    """The outline of a model that could not be read."""
    return {
        "file": file, "format": "", "inputs": [], "outputs": [], "operators": {},
        "constants": [0, 0], "top": [], "holds": [], "nodes": [], "names": [],
    }  # fmt: skip


class _Outline:
    def __init__(self, model: Model, layers: Mapping[str, str]) -> None:
        self.model = model
        self.layers = layers
        self.names: dict[str, int] = {}
        self.nodes: list[Json] = []
        self.inputs = set(model.graph.inputs)
        self.sites = Counter[str]()
        self.captured: dict[Value, Value] = {}
        self.place: dict[Value, str] = {}
        self.labels = {"graph": "graph"}

    def made(self, file: str) -> Json:
        model, graph = self.model, self.model.graph
        counts = Counter(node.op for node in graph.walk() if node.op != "Constant")
        constants = sizes_of_constants(graph)
        top = self._graph(graph, "graph")
        return {
            "file": file,
            "format": format_of(model.format, model.opset, model.opsets),
            "inputs": [[self._name(v), short_type(v.type)] for v in graph.inputs],
            "outputs": [
                [self._text(name or called(v)), short_type(v.type)]
                for name, v in zip(names_of_outputs(graph), graph.outputs, strict=True)
            ],
            "operators": dict(counts.most_common()),
            "constants": [len(constants), sum(constants)],
            "top": top,
            "holds": [] if top else self._holds(graph),
            "nodes": self.nodes,
            "names": [[short(name), name] for name in self.names],
        }

    def _text(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))

    def _name(self, value: Value) -> int:
        return self._text(called(value))

    def _graph(self, graph: Graph, where: str) -> list[int]:
        """Adds the Ifs and Loops of a graph and all in them; returns the graph's own ones."""
        found = []
        for node in graph.nodes:
            for value in node.outputs:
                self.place[value] = where
            if node.bodies:
                found.append(len(self.nodes))
                self._node(node, where)
        return found

    def _node(self, node: Node, where: str) -> None:
        name = node.name or node.outputs[0].name
        here = f'{where} / {node.op} "{name}"'
        made: Json = {"op": node.op, "name": self._text(name), "where": here}
        self.nodes.append(made)
        made["site"] = self.sites[node.op]
        self.sites[node.op] += 1
        made["says"] = says(node, self.captured)
        made["outputs"] = [
            [self._name(v), short_type(v.type), [self._text(name) for name in v.names[1:]]]
            for v in node.outputs
        ]
        layer = next(
            (self.layers[n] for v in node.outputs for n in v.names if n in self.layers), ""
        )
        if layer:
            made["layer"] = layer
        made["bodies"] = []
        roles = ("then", "else") if node.op == "If" else ("body",)
        for role, body in zip(roles, node.bodies, strict=True):
            inside = f"{here} / {role}{'_branch' if role != 'body' else ''}"
            self.labels[inside] = f"{role} of {short(name)}"
            made["bodies"].append(self._body(node, body, role, where, inside))

    def _body(self, node: Node, body: Body, role: str, where: str, inside: str) -> Json:
        self.captured.update(node.captures(body))
        inputs = [
            [self._name(value), short_type(value.type), *self._source(node, body, port, where)]
            for value, port in body.entries()
        ]
        counts = Counter(n.op for n in body.graph.nodes if n.op != "Constant")
        nodes = self._graph(body.graph, inside)
        outputs = [
            [self._name(value), short_type(value.type), *self._sink(node, port)]
            for value, port in body.exits()
        ]
        return {
            "role": role,
            "inputs": inputs,
            "outputs": outputs,
            "operators": dict(counts.most_common()),
            "nodes": nodes,
            "holds": self._holds(body.graph),
        }

    def _holds(self, graph: Graph) -> list[list[Any]]:
        return [self._held(n) for n in graph.nodes if n.op != "Constant" and not n.bodies]

    def _held(self, node: Node) -> list[Any]:
        return [
            node.op,
            self._text(node.name or called(node.outputs[0])),
            [None if value is None else self._name(value) for value in node.inputs],
            [[self._name(value), short_type(value.type)] for value in node.outputs],
        ]

    def _source(
        self, node: Node, body: Body, port: InputPort, where: str
    ) -> tuple[str, int | None, str, str]:
        """The source of a body's input: words, the name in them, and its maker."""
        index = getattr(port, "input", None)
        outer = node.inputs[index] if index is not None else None
        if outer is None and not isinstance(port, Carried):
            return "the number of the iteration", None, "", ""
        name = self._name(outer) if outer is not None else None
        maker = self._maker(outer, where) if outer is not None else ("", "")
        match port:
            case Carried():
                following = short(called(body.graph.outputs[port.output]))
                start = "#" if outer is not None else "true"
                return f"{start}, then {following} of the iteration before", name, maker[0], ""
            case Sliced():
                return f"a slice of # along axis {port.axis}", name, maker[0], ""
        return "#", name, *maker

    def _sink(self, node: Node, port: OutputPort) -> tuple[str, int | None, str, str]:
        match port:
            case Yield(int(index)):
                return "#", self._name(node.outputs[index]), "", ""
            case Yield():
                return "the next iteration", None, "", ""
            case Stacked():
                name = self._name(node.outputs[port.output])
                return f"# along axis {port.axis}", name, "", ""
        return "whether to go on", None, "", ""

    def _maker(self, value: Value, where: str) -> tuple[str, str]:
        """The maker of a captured value, and its graph: `Conv "c1" in graph`. In short, the graph
        is left out if it is `where`."""
        while value in self.captured:
            value = self.captured[value]
        node = value.producer
        if node is None:
            if value in self.inputs:
                return "an input of the model", "input"
            return "a body's input", ""
        place = self.place.get(value, "graph")
        what = f'{node.op} "{node.name}"' if node.name else node.op
        near = node.op if place == where else f"{node.op} in {self.labels[place]}"
        return f"{what} in {place}", near


def says(node: Node, captured: Mapping[Value, Value]) -> str:
    """The condition of an If, or how often a Loop runs. `captured` has the outer values that
    inputs of the bodies around it are."""

    def formula(value: Value) -> str:
        return expression(value, lambda v: short(called(v)), captured)

    condition = node.input(0 if node.op == "If" else 1)
    if node.op == "If":
        return formula(condition) if condition is not None else ""
    (body,) = node.bodies
    parts = []
    trips = node.input(0)
    known = known_of(trips).ints
    if known is not None and len(known) == 1 and known[0] >= _NO_LIMIT:
        trips = None
    if trips is not None:
        parts.append(f"{formula(trips)} times")
    slices = [port for port in body.inputs if isinstance(port, Sliced)]
    if slices and trips is None:
        sliced = node.inputs[slices[0].input]
        assert sliced is not None
        parts.append(f"for each slice of {formula(sliced)}")
    if condition is not None and condition.constant is None:
        parts.append(f"if {formula(condition)}")
    return ", ".join(parts) or "until its condition is false"


def called(value: Value) -> str:
    """The value's name, or a name made of its producer."""
    if value.name or value.producer is None:
        return value.name
    node = value.producer
    return f"{node.name or node.op}:{node.outputs.index(value)}"


def format_of(format: str, opset: int | None, domains: Mapping[str, int]) -> str:
    """The format of a model, with the operator sets that it is written in."""
    if format == "ir":
        return "OpenVINO IR"
    others = "".join(f", {domain} {version}" for domain, version in sorted(domains.items()))
    return f"ONNX, operator set {opset}{others}"
