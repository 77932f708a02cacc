"""If and Loop as layers: the ports of bodies become port maps."""

from typing import Any

import numpy as np

from bridge.ir_format.graph_writer import GraphWriter
from bridge.ir_format.provenance import key_of_body
from bridge.ir_format.text import Text
from bridge.neutral.graph import Body, Node, Value, loop_kind
from bridge.neutral.ports import Carried, Condition, Invariant, Iteration, Sliced, Stacked, Yield
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import BOOL, I64, TensorType

_BODY_INDENT = "\t\t\t"

_DEEPEST_INDENT = 60
"""Tabs before the layers of a body, at most: with one more per body, a file would grow with the
square of its depth."""


class _BodyWriter:
    """A body while it is written. Each output has its own Result. If two outputs shared one, a
    reader could not tell which state gives its value after no iteration."""

    def __init__(self, outer: GraphWriter, body: Body, type: str, name: str, tag: str) -> None:
        indent = (outer.indent + _BODY_INDENT)[:_DEEPEST_INDENT]
        self.tag = tag
        outer.file.bodies.append(body.graph)
        where, key = f'{outer.where} / {type} "{name}" / {tag}', key_of_body(outer.key, name, tag)
        self.writer = GraphWriter(outer.file, body.graph, where, indent, key)
        self.writer.claim_names()
        self.parameters = [self.writer.parameter(value) for value in body.graph.inputs]
        self.writer.nodes()
        self.results = [self.result(value) for value in body.graph.outputs]

    def result(self, value: Value) -> int:
        """Appends a Result that gives out `value`; its id."""
        return self.writer.result(value, f"{value.name}/sink_port_0" if value.name else "")

    def condition(self, body: Body) -> int:
        """The Result that says whether a further iteration runs. Without one it is always true."""
        for port, result in zip(body.outputs, self.results, strict=True):
            if isinstance(port, Condition):
                return result
        return self.result(_constant(self.writer, np.array(True), BOOL))

    def text(self) -> Text:
        """The body as an element."""
        tab = self.writer.indent[:-1]
        return [f"{tab}<{self.tag}>\n", self.writer.text(), f"{tab}</{self.tag}>\n"]


def _entry(kind: str, port: int, layer: int, further: str = "", before: str = "") -> str:
    return f'<{kind} {before}external_port_id="{port}" internal_layer_id="{layer}"{further} />'


def _map(writer: GraphWriter, tag: str, entries: list[str]) -> Text:
    tab = writer.indent + "\t\t"
    return [f"{tab}<{tag}>\n", *(f"{tab}\t{entry}\n" for entry in entries), f"{tab}</{tag}>\n"]


def write_if(writer: GraphWriter, node: Node, data: dict[str, str]) -> None:
    """Appends an If-8. Both bodies share the port of an outer value. OpenVINO lets a port lead to
    one Parameter of a body, so a second Parameter gets its own port."""
    id, name = writer.identify(node, "If")
    # An outer value by its index, and how many Parameters of the body have it already.
    keys: list[list[tuple[int, int]]] = []
    for body in node.bodies:
        counts: dict[int, int] = {}
        keys.append([])
        for port in body.inputs:
            assert isinstance(port, Invariant)
            # Input 0 is the condition and leads to no body.
            count = counts.get(port.input, 1 if port.input == 0 else 0)
            counts[port.input] = count + 1
            keys[-1].append((count, port.input))
    external = {key: i for i, key in enumerate(sorted({k for own in keys for k in own}), 1)}
    inputs = [node.operand(index) for index in (0, *(index for _, index in external))]
    maps: list[Text] = []
    texts: Text = []
    for body, own, tag in zip(node.bodies, keys, ("then_body", "else_body"), strict=True):
        inner = _BodyWriter(writer, body, "If", name, tag)
        entries = [
            _entry("input", external[key], parameter)
            for key, parameter in sorted(zip(own, inner.parameters, strict=True))
        ]
        for port, result in _by_output(body, inner.results):
            assert isinstance(port, Yield) and port.output is not None
            entries.append(_entry("output", len(inputs) + port.output, result))
        maps.append(_map(writer, tag.replace("body", "port_map"), entries))
        texts.append(inner.text())
    writer.layer(
        id, name, "If", "opset8", data, inputs, node.outputs, node.extras,
        before=[*maps[1], *maps[0]], after=texts, node=node,
    )  # fmt: skip


def write_loop(writer: GraphWriter, node: Node, data: dict[str, str]) -> None:
    """Appends a TensorIterator-1 if slices alone say how often it runs, else a Loop-5."""
    body = node.body
    # A TensorIterator's body knows not the number of the iteration, as Scan's does not.
    is_loop = loop_kind(node) != "scan"
    type = "Loop" if is_loop else "TensorIterator"
    inputs: list[Value] = []
    if is_loop:
        inputs.append(node.input(0) or _constant(writer, np.array(-1, np.int64), I64))
        inputs.append(node.input(1) or _constant(writer, np.array(True), BOOL))
    id, name = writer.identify(node, type)
    inner = _BodyWriter(writer, body, type, name, "body")
    entries: list[str] = []
    special: list[str] = []
    back_edges: list[str] = []
    for port, parameter in zip(body.inputs, inner.parameters, strict=True):
        if isinstance(port, Iteration):
            purpose = ' purpose="current_iteration"'
            special.append(_entry("input", -1, parameter, purpose))
            continue
        axis = further = ""
        if isinstance(port, Carried):
            source = inner.results[port.output]
            back_edges.append(f'<edge from-layer="{source}" to-layer="{parameter}" />')
        elif isinstance(port, Sliced):
            axis, further = _slicing(port, node.operand(port.input))
        entries.append(_entry("input", len(inputs), parameter, further, axis))
        inputs.append(inputs[1] if port.input is None else node.operand(port.input))
    for port, result in _by_output(body, inner.results):
        axis = further = ""
        if isinstance(port, Stacked):
            axis, further = _slicing(port, node.outputs[port.output])
        entries.append(_entry("output", len(inputs) + port.output, result, further, axis))
    if is_loop:
        purpose = ' purpose="execution_condition"'
        special.append(_entry("output", -1, inner.condition(body), purpose))
    before = _map(writer, "port_map", entries + special)
    if back_edges:
        before += _map(writer, "back_edges", back_edges)
    version = "opset5" if is_loop else "opset1"
    writer.layer(
        id, name, type, version, data, inputs, node.outputs, node.extras,
        before=before, after=inner.text(), node=node,
    )  # fmt: skip


def _by_output(body: Body, results: list[int]) -> list[tuple[Any, int]]:
    """The ports of a body that lead to outputs of the node, in their order, and their Results."""
    pairs = [
        (port, result)
        for port, result in zip(body.outputs, results, strict=True)
        if not isinstance(port, Condition) and port.output is not None
    ]
    return sorted(pairs, key=lambda pair: pair[0].output)


def _slicing(port: Sliced | Stacked, value: Value) -> tuple[str, str]:
    """The attributes of a sliced input or a concatenated output, whose axis is counted
    from the front."""
    assert port.keepdims, "IR's slices keep their axis; a pass sees to it"
    axis = port.axis
    if axis < 0 and value.rank is not None:
        axis += value.rank
    return f'axis="{axis}" ', (
        f' start="{port.start}" end="{port.end}" stride="{port.stride}" '
        f'part_size="{port.part_size}"'
    )


def _constant(writer: GraphWriter, array: np.ndarray, element: Any) -> Value:
    """A Const that only IR needs."""
    value = Value(TensorType(element, ()))
    writer.constant(Tensor.of(array), value)
    return value
