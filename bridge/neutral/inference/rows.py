"""Types of outputs as rows of `mappings/` declare them (`types`, see `bridge/vocabulary/`)."""

from bridge.neutral.graph import Node
from bridge.neutral.inference import first
from bridge.neutral.inference.dims import dim_product
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, Dim, Shape, TensorType, broadcast
from bridge.vocabulary import Operator
from bridge.vocabulary.elements import ELEMENTS, Element


def declared_types(node: Node, row: Operator) -> list[TensorType]:
    """The types that a row declares of the outputs of a node."""
    texts = (text.partition(" ")[::2] for text in row.types)
    return [TensorType(_element(node, row, names), _shape(node, row, s)) for names, s in texts]


def _element(node: Node, row: Operator, names: str) -> Element | None:
    """The first known element type of several."""
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
        return known_of(node.input(row.places[name])).dims
    parts = filter(None, text.strip("[]").split(", "))
    return tuple(dim_product([_dim(node, row, f) for f in part.split("*")]) for part in parts)


def _dim(node: Node, row: Operator, text: str) -> Dim:
    name, _, axis = text.partition(".")
    if name in row.attributes:
        dim: Dim = node.attributes[name][int(axis)] if axis else node.attributes[name]
        return dim
    if axis:
        shape = first(node, row.places[name]).shape
        return shape[int(axis)] if shape else ANY
    if name in row.places:
        known = known_of(node.input(row.places[name])).ints
        return known[0] if known else ANY
    return ANY if name == "?" else int(name)
