"""A first survey of a ModelProto: it counts the nodes and makes all texts valid UTF-8.

Protobuf does not check that an ONNX file has UTF-8. It returns other text as bytes, but all other
code relies on strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import onnx

from bridge.onnx_format.deep import Grafts

_A = onnx.AttributeProto


def survey(proto: onnx.ModelProto, grafts: Grafts, own: bool) -> tuple[onnx.ModelProto, int]:
    """The model, and the number of nodes in all its graphs and functions. Text that is not UTF-8
    gets escapes. Only the model's `own` messages are changed; others are copied first."""
    graphs = [proto.graph, *grafts]
    kinds = set(map(type, _of_model(proto)))
    count = 0
    for function in proto.functions[:]:
        kinds.update(map(type, _of_function(function)))
        count += _nodes(function.node[:], graphs, kinds)
    while graphs:
        graph = graphs.pop()
        kinds.update(map(type, _of_graph(graph)))
        count += _nodes(graph.node[:], graphs, kinds)
    if kinds <= {str}:
        return proto, count
    if not own:
        copied = onnx.ModelProto()
        copied.CopyFrom(proto)
        proto = copied
    for message in (proto, *grafts):
        _repair(message)
    return proto, count


# A slice of a repeated field makes a list at once. Protobuf's iterators end with an exception, and
# its message takes as long as a few elements.


def _nodes(nodes: Sequence[onnx.NodeProto], graphs: list[onnx.GraphProto], kinds: set[type]) -> int:
    """Adds the kinds of the nodes' texts to `kinds` and the nodes' graphs to `graphs`; returns the
    number of nodes."""
    for node in nodes:
        texts = [node.op_type, node.name, node.domain, node.overload, node.doc_string]
        texts += node.input[:]
        texts += node.output[:]
        texts += _of_entries(node)
        for attribute in node.attribute[:]:
            texts += (attribute.name, attribute.ref_attr_name)
            if attribute.type == _A.GRAPH:
                graphs.append(attribute.g)
            elif attribute.type == _A.TENSOR:
                texts += _of_tensor(attribute.t)
        kinds.update(map(type, texts))
    return len(nodes)


def _of_model(m: onnx.ModelProto) -> Iterable[Any]:
    yield from (m.producer_name, m.producer_version, m.domain, m.doc_string)
    yield from (entry.domain for entry in m.opset_import)
    yield from _of_entries(m)


def _of_function(m: onnx.FunctionProto) -> Iterable[Any]:
    yield from (m.name, m.domain, m.overload, *m.input, *m.output, *m.attribute)
    yield from (entry.domain for entry in m.opset_import)


def _of_graph(m: onnx.GraphProto) -> Iterable[Any]:
    yield from (m.name, m.doc_string)
    for info in (*m.input[:], *m.output[:], *m.value_info[:]):
        yield from _of_info(info)
    for tensor in (*m.initializer[:], *(sparse.values for sparse in m.sparse_initializer[:])):
        yield from _of_tensor(tensor)
    yield from _of_entries(m)


def _of_tensor(m: onnx.TensorProto) -> Iterable[Any]:
    return (m.name, *(entry.value for entry in m.external_data[:]))


def _of_entries(m: Any) -> Iterable[Any]:
    return [text for entry in m.metadata_props[:] for text in (entry.key, entry.value)]


def _of_info(info: onnx.ValueInfoProto) -> Iterable[Any]:
    yield from (info.name, info.doc_string)
    type = info.type
    while (kind := type.WhichOneof("value")) in ("sequence_type", "optional_type"):
        type = getattr(type, kind).elem_type
    for dim in type.tensor_type.shape.dim[:]:
        yield dim.dim_param


def _repair(message: Any) -> None:
    """Writes escapes for bytes that are not UTF-8, in all texts of a message and its messages."""
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
