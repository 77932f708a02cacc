"""Types of outputs as rows of `mappings/` declare them (`types`, see `bridge/vocabulary.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.elements import ELEMENTS, Element
from bridge.neutral.graph import Node
from bridge.neutral.inference import first
from bridge.neutral.inference.dims import known_integers, shape_in
from bridge.neutral.types import ANY, Dim, Shape, TensorType, broadcast
from bridge.vocabulary import Operator


def declared_types(node: Node, row: Operator) -> list[TensorType]:
    """The types that a row declares of the outputs of a node."""
    texts = (text.partition(" ")[::2] for text in row.types)
    return [TensorType(_element(node, row, names), _shape(node, row, s)) for names, s in texts]


def _element(node: Node, row: Operator, names: str) -> Element | None:
    """The first of several element types that is known."""
    for name in names.split("|"):
        if name in row.places:
            element = first(node, row.places[name]).element
        else:
            element = node.attributes.get(name) or ELEMENTS.get(name)
        if element is not None:
            return element
    return None


def _shape(node: Node, row: Operator, text: str) -> Shape:
    word, _, name = text.partition(" ")
    if word == "broadcast":
        return broadcast(*(first(node, index).shape for index in range(len(node.inputs))))
    if word == "like":
        return first(node, row.places[name]).shape
    if word == "of":
        return shape_in(node.input(row.places[name]))
    return tuple(dim for part in text.strip("[]").split(", ") for dim in _dims(node, row, part))


def _dims(node: Node, row: Operator, text: str) -> Iterator[Dim]:
    name, _, axis = text.partition(".")
    if axis:
        shape = first(node, row.places[name]).shape
        yield shape[int(axis)] if shape else ANY
    elif name in row.places:
        known = known_integers(node.input(row.places[name]))
        yield known[0] if known else ANY
    elif name in row.attributes:
        yield node.attributes[name]
    elif name:
        yield ANY if name == "?" else int(name)
