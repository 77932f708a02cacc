"""Graphs as readable text."""

from contextlib import suppress
from dataclasses import fields

from bridge.errors import text_of
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import InputPort, OutputPort
from bridge.neutral.tensor import Tensor
from bridge.vocabulary.elements import NoArray

SHOWN = 8
"""Longest constant whose values are shown."""


def show(graph: Graph) -> str:
    """The graph as text, nested bodies indented:

    graph (%x: f32[2]) -> %y
      %y: f32[2] = Relu(%x)
    """
    names = _Names()
    lines: list[str] = []
    _graph(graph, "graph", names, lines, 0)
    return text_of(lines)


class _Names:
    def __init__(self) -> None:
        self._of: dict[Value, str] = {}
        self._count: dict[str, int] = {}

    def __call__(self, value: Value | None) -> str:
        if value is None:
            return "-"
        name = self._of.get(value)
        if name is None:
            base = value.name
            count = self._count[base] = self._count.get(base, -1) + 1
            name = f"%{base}" if base and not count else f"%{base}#{count}"
            self._of[value] = name
        return name


def _graph(graph: Graph, title: str, names: _Names, lines: list[str], depth: int) -> None:
    pad = "  " * depth
    inputs = ", ".join(f"{names(v)}: {v.type}" for v in graph.inputs)
    head = f"{pad}{title} ({inputs})"
    lines.append("")
    at = len(lines) - 1
    for node in graph.nodes:
        _node(node, names, lines, depth + 1)
    lines[at] = f"{head} -> {', '.join(names(v) for v in graph.outputs)}"


def _node(node: Node, names: _Names, lines: list[str], depth: int) -> None:
    pad = "  " * depth
    outputs = ", ".join(f"{names(v)}: {v.type}" for v in node.outputs)
    inputs = ", ".join(names(v) for v in node.inputs)
    attributes = ", ".join(
        f"{k}={_attribute(v)}" for k, v in sorted(node.attributes.items()) if v is not None
    )
    lines.append(
        f"{pad}{outputs} = {node.op}({inputs}){' {' + attributes + '}' if attributes else ''}"
    )
    titles = ("then", "else") if node.op == "If" else ("body",)
    for title, body in zip(titles, node.bodies, strict=False):
        _body(body, title, names, lines, depth + 1)


def _body(body: Body, title: str, names: _Names, lines: list[str], depth: int) -> None:
    _graph(body.graph, title, names, lines, depth)
    pad = "  " * (depth + 1)
    for value, port in body.entries():
        lines.append(f"{pad}{names(value)} <- {_port(port)}")
    for value, exit in body.exits():
        lines.append(f"{pad}{names(value)} -> {_port(exit)}")


def _port(port: InputPort | OutputPort) -> str:
    """A port without the fields that have their default value."""
    values = ((field, getattr(port, field.name)) for field in fields(port))
    told = (f"{field.name}={value}" for field, value in values if value != field.default)
    return f"{type(port).__name__}({', '.join(told)})"


def _attribute(value: object) -> str:
    if isinstance(value, Tensor):
        if value.size <= SHOWN:
            with suppress(NoArray):
                return f"{value} {value.array().tolist()}"
        return repr(value)
    # An extra of one format may be a text of several lines.
    return " ".join(repr(value).splitlines())
