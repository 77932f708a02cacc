"""Notes of an ONNX file that do not change the computation: doc strings and metadata of graphs,
values and nodes, and declared shapes. `bridge/onnx_format/survey.py` collects them by path."""

from collections.abc import Mapping
from typing import Any

import onnx
import onnx.helper

from bridge.neutral.extras import NodeExtras, Note
from bridge.neutral.types import ContainerType, Dim, TensorType, Type, innermost, meet_dim

NODE = "node"
"""The last step of a node's path, behind its first output: values have names of their own."""


HINTS = ("accuracy_level",)
"""Integer attributes of onnxruntime's own operators that do not change the result."""


def within(path: str, *steps: str) -> str:
    """The path of a part, from the path of its graph."""
    return " / ".join([path, *steps] if path else steps)


def read_extras(part: Any) -> NodeExtras | None:
    """The doc string and the metadata of a part of a model; None if it has neither."""
    text, entries = part.doc_string, part.metadata_props[:]
    if not text and not entries:
        return None
    extras: NodeExtras = {}
    if text:
        extras["doc_string"] = text
    if entries:
        extras["metadata_props"] = {entry.key: entry.value for entry in entries}
    return extras


def dims_of(type: Type) -> list[int | str | None] | None:
    """The declared shape of a value, or of the tensors that it holds; None if there is none."""
    shape = innermost(type).shape
    if shape is None:
        return None
    return [dim if isinstance(dim, int | str) else None for dim in shape]


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
