"""Scan 8: every input has a batch dimension in front, so it is a loop over the batch of a Scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.captures import Captures
from bridge.neutral.graph import Value
from bridge.neutral.ports import Sliced, Stacked
from bridge.onnx_format.attributes import read_attribute
from bridge.onnx_format.proto_node import ProtoNode
from bridge.onnx_format.scope import Scope

if TYPE_CHECKING:
    from bridge.onnx_format.frontend import OnnxReader


def read_scan_8(reader: OnnxReader, node: ProtoNode, scope: Scope) -> None:
    """Reads Scan 8 as a Loop over axis 0 of all inputs, with a Scan 9 as its body."""
    from bridge.onnx_format.control import (
        fill_scan_body,
        given_input,
        graph_attribute,
        scanned_type,
    )

    where = node.where
    if node.input[0]:
        why = "Bridge has no form for its sequence_lens, which operator set 9 dropped"
        raise UnsupportedError("Bridge's graph", [Unsupported("Scan", where, why)])
    graph, home = graph_attribute(reader, node, "body", where)
    raw = {a.name: read_attribute(a, reader.files, where) for a in node.attribute}
    attributes = {"num_scan_inputs": raw["num_scan_inputs"]}
    if "directions" in raw:
        attributes["scan_input_directions"] = raw["directions"]
    outer = Captures([None, None, *(given_input(name, scope, where) for name in node.input[1:])])
    per_batch = scope.nested(outer, f"{node.described} / batch")
    inner_inputs: list[Value | None] = [None, None]
    for index in range(2, len(outer.inputs)):
        port = Sliced(index, 0, keepdims=False)
        given = outer.inputs[index]
        assert given is not None
        value = Value(scanned_type(given.type, port, where))
        per_batch.graph.inputs.append(value)
        per_batch.body.inputs.append(port)
        inner_inputs.append(value)
    captures = Captures(inner_inputs)
    inner = per_batch.nested(captures, "body", home)
    fill_scan_body(reader, inner, graph, attributes, inner_inputs, len(node.output), where)
    loop = per_batch.builder.node(
        "Loop", captures.inputs, len(node.output), {}, (inner.body,), node.name
    )
    per_batch.graph.outputs = list(loop.outputs)
    per_batch.graph.nodes = per_batch.builder.nodes
    per_batch.body.outputs = [Stacked(i, keepdims=False) for i in range(len(node.output))]
    outputs = scope.outputs(node)
    scope.builder.node("Loop", outer.inputs, outputs, {}, (per_batch.body,), node.name)
    scope.bind(node, outputs)
