"""Notes of an ONNX file that do not change the computation: doc strings and metadata of graphs,
values and nodes, and declared shapes.

The key of a part is its path: the names of the parts around it, with " / " between them. A graph in
a node has the name of the node's first output and the attribute; a node has its first output.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx
import onnx.helper

from bridge.neutral.extras import PRODUCER, Note
from bridge.neutral.types import ContainerType, Dim, TensorType, Type, innermost, meet_dim
from bridge.onnx_format.types import read_type

NODE = "node"
"""The last step of a node's path, behind its first output: values have names of their own."""


HINTS = ("accuracy_level",)
"""Integer attributes of onnxruntime's own operators that do not change the result."""


def within(path: str, *steps: str) -> str:
    """The path of a part, from the path of its graph."""
    return " / ".join([path, *steps] if path else steps)


def collect(
    graph: onnx.GraphProto, is_open: bool, every: bool = False, path: str = ""
) -> Iterator[tuple[str, Note]]:
    """The notes of a graph, its values and nodes, and of all graphs in it, by path. Unless some
    size of the inputs is open (`is_open`), the sizes of all others are known without them. If
    each value has a type (`every`), no note records it."""
    yield from _of(path, graph)
    for info in (*graph.input[:], *graph.output[:], *graph.value_info[:]):
        yield from _of(within(path, info.name), info)
    for info in (*(graph.input[:] if path else ()), *graph.output[:]):
        dims = _dims(info)
        if dims is not None and (is_open or not _is_static(dims)):
            yield within(path, info.name), {"shape": dims}
    for info in () if every else graph.value_info[:]:
        dims = _dims(info)
        if dims is not None:
            yield within(path, info.name), {"value_info": dims}
    for node in graph.node[:]:
        if outputs := node.output[:]:
            yield from _of_node(node, outputs[0], is_open, every, path)


def _of_node(
    node: onnx.NodeProto, place: str, is_open: bool, every: bool, path: str
) -> Iterator[tuple[str, Note]]:
    """The notes of a node, whose first output is called `place`, and of the graphs in it."""
    if node.doc_string or node.metadata_props:
        yield from _of(within(path, place, NODE), node)
    for attribute in node.attribute[:]:
        if attribute.type == onnx.AttributeProto.INT:
            if attribute.name in HINTS:
                yield within(path, place, NODE), {"hints": {attribute.name: attribute.i}}
        elif attribute.type == onnx.AttributeProto.GRAPH:
            yield from collect(attribute.g, is_open, every, within(path, place, attribute.name))


def gather(model: onnx.ModelProto) -> dict[str, Note]:
    """All notes of a model's graph by path."""
    graph = model.graph
    is_open = any(not _is_static(_dims(info)) for info in graph.input)
    notes: dict[str, Note] = {}
    for path, note in collect(graph, is_open, model.producer_name == PRODUCER):
        notes.setdefault(path, {}).update(note)
    return notes


def _of(path: str, part: Any) -> Iterator[tuple[str, Note]]:
    if part.doc_string:
        yield path, {"doc_string": part.doc_string}
    if part.metadata_props:
        yield path, {"metadata_props": {entry.key: entry.value for entry in part.metadata_props}}


def _dims(info: onnx.ValueInfoProto) -> list[int | str | None] | None:
    """The declared shape of a value, or of the tensors that it holds; None if there is none."""
    shape = innermost(read_type(info.type)).shape
    if shape is None:
        return None
    return [dim if isinstance(dim, int | str) else None for dim in shape]


def _is_static(dims: list[int | str | None] | None) -> bool:
    return dims is not None and all(isinstance(dim, int) for dim in dims)


def write_note(notes: Mapping[str, Note], path: str, part: Any) -> None:
    """Writes the doc string and the metadata of a part that has none."""
    note = notes.get(path)
    if note is None:
        return
    if note.get("doc_string") and not part.doc_string:
        part.doc_string = note["doc_string"]
    if not part.metadata_props:
        for key, text in note.get("metadata_props", {}).items():
            part.metadata_props.add(key=key, value=text)


def write_hints(notes: Mapping[str, Note], path: str, node: onnx.NodeProto) -> None:
    """Writes the hints of a node of onnxruntime's own."""
    for name, value in notes.get(path, {}).get("hints", {}).items() if node.domain else ():
        if all(attribute.name != name for attribute in node.attribute):
            node.attribute.append(onnx.helper.make_attribute(name, value))


def as_declared(type: Type, note: Note) -> Type:
    """A type with the declared names of its open sizes. A declared number is used for an open size
    if nothing contradicts it."""
    dims = note.get("shape", note.get("value_info"))
    if isinstance(type, ContainerType):
        return type.of(as_declared(type.item, note))
    if not isinstance(type, TensorType) or dims is None or type.rank != len(dims):
        return type
    shape = tuple(map(_as_declared, type.shape or (), dims))
    return TensorType(type.element, shape)


def _as_declared(dim: Dim, declared: int | str | None) -> Dim:
    if declared is None or isinstance(dim, int):
        return dim
    return declared if isinstance(declared, str) else meet_dim(dim, declared)
