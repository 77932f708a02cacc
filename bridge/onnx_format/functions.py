"""Functions: the model's own and the standard's, read in place of the nodes that call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import onnx
import onnx.defs

from bridge.errors import InvalidModelError
from bridge.limits import budget
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.onnx_format.external import ModelFiles
from bridge.onnx_format.opsets import canonical, read_opsets
from bridge.onnx_format.proto_node import ProtoNode
from bridge.onnx_format.scope import Scope

if TYPE_CHECKING:
    from bridge.onnx_format.frontend import OnnxReader


class Functions:
    """A model's local functions, by domain, name and overload."""

    def __init__(self, protos: Iterable[onnx.FunctionProto]) -> None:
        self._table = {(canonical(f.domain), f.name, f.overload): f for f in protos}

    def get(self, node: ProtoNode) -> onnx.FunctionProto | None:
        """The function that a node calls, None if it calls an operator."""
        if not self._table:
            return None
        return self._table.get((node.domain, node.op_type, node.proto.overload))


def inline(
    reader: OnnxReader,
    function: onnx.FunctionProto,
    call: ProtoNode,
    scope: Scope,
    closed: bool = True,
) -> None:
    """Reads the body of `function` into the scope of the node that calls it. A function that is not
    `closed` comes from a graph that may use names of the calling scope."""
    where = call.where
    key = f"{canonical(function.domain)}::{function.name}::{function.overload}"
    budget().graph(scope.depth + 1, where)
    if closed and key in scope.calls:
        raise InvalidModelError(f"{where}: its function calls itself")
    for kind, given, most in (
        ("inputs", len(call.input), len(function.input)),
        ("outputs", len(call.output), len(function.output)),
    ):
        if given > most:
            raise InvalidModelError(f"{where}: has {given} {kind}, its function has {most}")
    attributes = {a.name: a for a in function.attribute_proto}
    for attribute in call.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH and closed:
            given = reader.grafts.lend(attribute.g, scope)
            attribute = onnx.AttributeProto(name=attribute.name, type=attribute.type, g=given)
        attributes[attribute.name] = attribute
    inputs = [scope.resolve(name, where) if name else None for name in call.input]
    prefix = f"{scope.prefix}{call.name or next(iter(call.output), '')}/"
    inner = Scope(
        reader,
        scope.builder,
        read_opsets(function.opset_import, where) if closed else scope.opsets,
        where,
        parent=None if closed else scope,
        attributes=attributes,
        prefix=prefix,
    )
    inner.caller, inner.depth = scope, scope.depth + 1
    inner.calls = (*scope.calls, key)
    results = read_body(reader, function, inputs, inner)
    scope.bind_results(call, results)


def read_body(
    reader: OnnxReader,
    function: onnx.FunctionProto,
    inputs: Sequence[Value | None],
    scope: Scope,
    count: int | None = None,
) -> list[Value | None]:
    """Reads a function's nodes into `scope`; its (first `count`) outputs."""
    for index, name in enumerate(function.input):
        scope.define(name, inputs[index] if index < len(inputs) else None)
    reader.nodes(function.node, scope)
    return [scope.resolve(name, "output") for name in function.output[:count]]


def expand_function(
    builder: Builder,
    function: onnx.FunctionProto,
    inputs: Sequence[Value | None],
    attributes: Iterable[onnx.AttributeProto],
    where: str,
    count: int,
) -> list[Value | None]:
    """Builds the body of a standard function with `builder`; returns its first `count` outputs. A
    body that was made for a node with `count` outputs computes no others."""
    from bridge.onnx_format.frontend import OnnxReader

    reader = OnnxReader(onnx.ModelProto(), ModelFiles(None))
    given = {a.name: a for a in function.attribute_proto}
    given.update({a.name: a for a in attributes})
    name = builder.name
    opsets = read_opsets(function.opset_import, where)
    opsets.setdefault("", onnx.defs.onnx_opset_version())
    scope = Scope(reader, builder, opsets, where, attributes=given, prefix=f"{name}/")
    results = read_body(reader, function, inputs, scope, count)
    builder.name = name
    return results
