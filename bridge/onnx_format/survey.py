"""A first look at a ModelProto: how many nodes it has, and whether its texts are texts.

Protobuf does not hold an ONNX file to UTF-8: what is none comes as bytes, where everything else
relies on strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx

from bridge.onnx_format.deep import Grafts

_A = onnx.AttributeProto


def survey(proto: onnx.ModelProto, grafts: Grafts, own: bool) -> tuple[onnx.ModelProto, int]:
    """The model, with escapes for what is no UTF-8 in its texts, and how many nodes it has in all
    its graphs and functions. Only its `own` messages are changed, others copied before."""
    count, whole = 0, True
    for message in _messages(proto, grafts):
        if isinstance(message, onnx.NodeProto):
            count += 1
        whole = whole and all(isinstance(text, str) for text in _texts(message))
    if whole:
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


def _texts(message: Any) -> Iterator[Any]:  # noqa: C901 (one case for each kind of message)
    """The texts of a message itself."""
    match message:
        case onnx.NodeProto():
            yield from (message.op_type, message.name, message.domain, message.overload)
            yield message.doc_string
            yield from message.input
            yield from message.output
        case onnx.AttributeProto():
            yield from (message.name, message.ref_attr_name)
        case onnx.ValueInfoProto():
            yield from (message.name, message.doc_string)
            type = message.type
            while (kind := type.WhichOneof("value")) in ("sequence_type", "optional_type"):
                type = getattr(type, kind).elem_type
            for dim in type.tensor_type.shape.dim:
                yield dim.dim_param
        case onnx.TensorProto():
            yield from (message.name, *(e.value for e in message.external_data))
        case onnx.StringStringEntryProto():
            yield from (message.key, message.value)
        case onnx.OperatorSetIdProto():
            yield message.domain
        case onnx.GraphProto():
            yield from (message.name, message.doc_string)
        case onnx.FunctionProto():
            yield from (message.name, message.domain, message.overload)
            yield from (*message.input, *message.output, *message.attribute)
        case onnx.ModelProto():
            yield from (message.producer_name, message.producer_version, message.domain)
            yield message.doc_string


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
