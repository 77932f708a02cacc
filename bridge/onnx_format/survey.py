"""A first look at a ModelProto: how many nodes it has, and whether its texts are texts.

Protobuf does not hold an ONNX file to UTF-8: what is none comes as bytes, where everything else
relies on strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import onnx

from bridge.onnx_format.deep import Grafts

_A = onnx.AttributeProto


def survey(proto: onnx.ModelProto, grafts: Grafts, own: bool) -> tuple[onnx.ModelProto, int]:
    """The model, with escapes for what is no UTF-8 in its texts, and how many nodes it has in all
    its graphs and functions. Only its `own` messages are changed, others copied before."""
    count = 0
    kinds: set[type] = {str}
    for message in _messages(proto, grafts):
        count += type(message) is onnx.NodeProto
        kinds.update(map(type, _TEXTS[type(message)](message)))
    if kinds == {str}:
        return proto, count
    if not own:
        copied = onnx.ModelProto()
        copied.CopyFrom(proto)
        proto = copied
    for message in (proto, *grafts):
        _repair(message)
    return proto, count


def _messages(proto: onnx.ModelProto, grafts: Iterable[onnx.GraphProto]) -> Iterator[Any]:
    """The messages that hold texts, those of graphs within graphs too."""
    yield proto
    yield from proto.opset_import
    yield from proto.metadata_props
    graphs = [proto.graph, *grafts]
    for function in proto.functions:
        yield function
        yield from function.opset_import
        yield from _nodes(function.node, graphs)
    while graphs:
        graph = graphs.pop()
        yield graph
        yield from _nodes(graph.node, graphs)
        for infos in (graph.input, graph.output, graph.value_info):
            yield from infos
        yield from graph.initializer
        yield from graph.metadata_props
        for sparse in graph.sparse_initializer:
            yield sparse.values


def _nodes(nodes: Iterable[onnx.NodeProto], graphs: list[onnx.GraphProto]) -> Iterator[Any]:
    for node in nodes:
        yield node
        yield from node.metadata_props
        for attribute in node.attribute:
            yield attribute
            if attribute.type == _A.GRAPH:
                graphs.append(attribute.g)
            elif attribute.type == _A.TENSOR:
                yield attribute.t


def _info_texts(info: onnx.ValueInfoProto) -> Iterator[Any]:
    yield from (info.name, info.doc_string)
    type = info.type
    while (kind := type.WhichOneof("value")) in ("sequence_type", "optional_type"):
        type = getattr(type, kind).elem_type
    for dim in type.tensor_type.shape.dim:
        yield dim.dim_param


_TEXTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    onnx.NodeProto: lambda m: (
        m.op_type, m.name, m.domain, m.overload, m.doc_string, *m.input, *m.output
    ),
    onnx.AttributeProto: lambda m: (m.name, m.ref_attr_name),
    onnx.ValueInfoProto: _info_texts,
    onnx.TensorProto: lambda m: (m.name, *(e.value for e in m.external_data)),
    onnx.StringStringEntryProto: lambda m: (m.key, m.value),
    onnx.OperatorSetIdProto: lambda m: (m.domain,),
    onnx.GraphProto: lambda m: (m.name, m.doc_string),
    onnx.FunctionProto: lambda m: (
        m.name, m.domain, m.overload, *m.input, *m.output, *m.attribute
    ),
    onnx.ModelProto: lambda m: (m.producer_name, m.producer_version, m.domain, m.doc_string),
}  # fmt: skip
"""The texts of a message itself, by its type."""


def _repair(message: Any) -> None:
    """Writes escapes for what is no UTF-8 in any text of a message and of those that it holds."""
    stack = [message]
    while stack:
        message = stack.pop()
        for field, value in message.ListFields():
            many = hasattr(value, "append") or hasattr(value, "add")
            if field.type == field.TYPE_MESSAGE:
                stack.extend(value if many else [value])
            elif field.type == field.TYPE_STRING and many:
                for index, text in enumerate(value):
                    if isinstance(text, bytes):
                        value[index] = _escaped(text)
            elif field.type == field.TYPE_STRING and isinstance(value, bytes):
                setattr(message, field.name, _escaped(value))


def _escaped(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")
