"""What rules ask of the inputs of a node. Short forms of operators are methods of `Builder`."""

from __future__ import annotations

from bridge.neutral.builder import UNKNOWN_ELEMENT, Refused
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import Element


def element_type(x: Value) -> Element:
    """The element type of `x`; Refused where it is not known."""
    if x.element is None:
        raise Refused(UNKNOWN_ELEMENT)
    return x.element


def ranks(node: Node, *indices: int) -> list[int]:
    """The ranks of the node's inputs; Refused where one is not known."""
    known = []
    for index in indices:
        value = node.inputs[index]
        if value is None or value.rank is None:
            raise Refused(
                f"the rank of its input {index} is not known; declare the graph's input shapes"
            )
        known.append(value.rank)
    return known


def ranked(node: Node) -> tuple[Value, int]:
    """Input 0 and its rank; Refused where it is absent, or its rank not known."""
    (x,), (rank,) = required(node, 0), ranks(node, 0)
    return x, rank


def required(node: Node, *indices: int) -> list[Value]:
    """The inputs at `indices`; Refused where one is absent."""
    found = []
    for index in indices:
        value = node.input(index)
        if value is None:
            raise Refused(f"its input {index} is absent")
        found.append(value)
    return found
