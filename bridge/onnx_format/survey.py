"""A first survey of a ModelProto, which reads each text of it once.

It counts the nodes, makes all texts valid UTF-8, and collects what does not change the computation:
notes, and the types of the top graph's values. Protobuf does not check that an ONNX file has UTF-8.
It returns other text as bytes, but all other code relies on strings. Protobuf also makes a text
anew for each access, and metadata of nodes is most of many files.

The path of a note has the names of the parts around it, with " / " between them. A graph in a node
has the name of the node's first output and the attribute; a node has its first output.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import onnx

from bridge.neutral.extras import PRODUCER, NodeExtras, Note
from bridge.neutral.types import UNKNOWN, Type, innermost, is_static
from bridge.onnx_format.deep import Grafts
from bridge.onnx_format.notes import HINTS, NODE, dims_of, read_extras, within
from bridge.onnx_format.type_protos import read_type

_A = onnx.AttributeProto


@dataclasses.dataclass(eq=False)
class Survey:
    """The facts of a model beside its computation.

    `nodes` is the number of nodes in all graphs and functions. `notes` are the notes of all graphs
    but those of functions, by path. For the top graph, `types` are the declared types of its
    values, by name. `extras` are those of the nodes outside functions, by the first output, unless
    several nodes in bodies have one of this name. `kinds` has the Python types of all texts.
    """

    nodes: int = 0
    notes: dict[str, Note] = dataclasses.field(default_factory=dict)
    types: dict[str, Type] = dataclasses.field(default_factory=dict)
    extras: dict[str, NodeExtras | None] = dataclasses.field(default_factory=dict)
    repeated: set[str] = dataclasses.field(default_factory=set)
    kinds: set[type] = dataclasses.field(default_factory=set)
    is_open: bool = False
    """Whether some size of the inputs is open. Else all other sizes follow without notes."""
    every: bool = False
    """Whether each value has a type. Then no note records it."""


def survey(proto: onnx.ModelProto, grafts: Grafts, own: bool) -> tuple[onnx.ModelProto, Survey]:
    """Returns the model and its survey. Escapes take the place of bytes that are not UTF-8. Only
    the model's `own` messages are changed; others are copied first."""
    found = _survey(proto, grafts)
    if found.kinds <= {str}:
        return proto, found
    if not own:
        copied = onnx.ModelProto()
        copied.CopyFrom(proto)
        proto = copied
    for message in (proto, *grafts):
        _repair(message)
    return proto, _survey(proto, grafts)


# A slice of a repeated field makes a list at once. Protobuf's iterators end with an exception, and
# its message takes as long as a few elements.


def _survey(proto: onnx.ModelProto, grafts: Grafts) -> Survey:
    """One survey. Paths are made with `str`, because a name may be bytes."""
    found = Survey(every=proto.producer_name == PRODUCER)
    _add_texts(found, _of_model(proto))
    for function in proto.functions[:]:
        _add_texts(found, _of_function(function))
        _add_nodes(found, function.node[:], None)
    found.extras.clear()
    for graph in grafts:
        _add_graph(found, graph, None)
    shapes = [innermost(read_type(info.type)).shape for info in proto.graph.input[:]]
    found.is_open = not all(map(is_static, shapes))
    _add_graph(found, proto.graph, "")
    for name in found.repeated:
        found.extras.pop(name, None)
    return found


def _add_texts(found: Survey, texts: Iterable[Any]) -> None:
    found.kinds.update(map(type, texts))


def _add_graph(found: Survey, graph: onnx.GraphProto, path: str | None) -> None:
    """Adds a graph and the graphs in it. Without a path, nothing is noted."""
    _add_texts(found, (graph.name,))
    _add_note(found, path, graph)
    inputs, outputs, inner = graph.input[:], graph.output[:], graph.value_info[:]
    first, last = len(inputs), len(inputs) + len(outputs)
    types = [_add_value(found, info, path) for info in (*inputs, *outputs, *inner)]
    for tensor in (*graph.initializer[:], *(s.values for s in graph.sparse_initializer[:])):
        _add_texts(found, _of_tensor(tensor))
    if path is not None:
        _note_shapes(found, path, types, first, last)
    if path == "":
        declared = (*types[last:], *types[first:last])
        found.types = {name: type for name, type in declared if type is not UNKNOWN}
    _add_nodes(found, graph.node[:], path)


def _add_value(found: Survey, info: onnx.ValueInfoProto, path: str | None) -> tuple[str, Type]:
    """Adds a value; returns its name and its type."""
    name, type = info.name, read_type(info.type)
    _add_texts(found, [name, *[d for d in innermost(type).shape or () if isinstance(d, bytes)]])
    _add_note(found, None if path is None else within(path, str(name)), info)
    return name, type


def _note_shapes(
    found: Survey, path: str, types: Sequence[tuple[str, Type]], first: int, last: int
) -> None:
    """Notes the declared shapes of a graph's values: first inputs, then outputs, then others."""
    for name, type in types[0 if path else first : last]:
        dims = dims_of(type)
        if dims is not None and (found.is_open or not is_static(innermost(type).shape)):
            found.notes.setdefault(within(path, str(name)), {})["shape"] = dims
    for name, type in () if found.every else types[last:]:
        dims = dims_of(type)
        if dims is not None:
            found.notes.setdefault(within(path, str(name)), {})["value_info"] = dims


def _add_nodes(found: Survey, nodes: Sequence[onnx.NodeProto], path: str | None) -> None:
    """Adds the nodes of a graph or a function, and the graphs in them."""
    found.nodes += len(nodes)
    for node in nodes:
        outputs = node.output[:]
        texts = [node.op_type, node.name, node.domain, node.overload, *node.input[:], *outputs]
        around = None if path is None or not outputs else within(path, str(outputs[0]))
        place = None if around is None else within(around, NODE)
        note = _add_note(found, place, node)
        if outputs and outputs[0]:
            if outputs[0] in found.extras:
                found.repeated.add(outputs[0])
            found.extras[outputs[0]] = note
        for attribute in node.attribute[:]:
            kind = attribute.type
            texts += (attribute.name, attribute.ref_attr_name)
            if kind == _A.GRAPH:
                inside = None if around is None else within(around, str(attribute.name))
                _add_graph(found, attribute.g, inside)
            elif kind == _A.TENSOR:
                texts += _of_tensor(attribute.t)
            elif kind == _A.INT and attribute.name in HINTS and place is not None:
                found.notes.setdefault(place, {})["hints"] = {attribute.name: attribute.i}
        _add_texts(found, texts)


def _add_note(found: Survey, path: str | None, part: Any) -> NodeExtras | None:
    """Adds the doc string and the metadata of a part; returns them."""
    extras = read_extras(part)
    if extras is not None:
        entries = extras.get("metadata_props", {})
        _add_texts(found, (extras.get("doc_string", ""), *entries, *entries.values()))
        if path is not None:
            found.notes.setdefault(path, {}).update(extras)  # type: ignore[typeddict-item]
    return extras


def _of_model(m: onnx.ModelProto) -> Iterable[Any]:
    yield from (m.producer_name, m.producer_version, m.domain, m.doc_string)
    yield from (entry.domain for entry in m.opset_import)
    for entry in m.metadata_props:
        yield from (entry.key, entry.value)


def _of_function(m: onnx.FunctionProto) -> Iterable[Any]:
    yield from (m.name, m.domain, m.overload, *m.input, *m.output, *m.attribute)
    yield from (entry.domain for entry in m.opset_import)


def _of_tensor(m: onnx.TensorProto) -> Iterable[Any]:
    return (m.name, *(entry.value for entry in m.external_data[:]))


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
