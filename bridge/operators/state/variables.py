"""IR's variables: ReadValue and Assign."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers
from bridge.neutral.types import TensorType


@infers("ReadValue")
def infer_read_value(node: Node) -> list[TensorType]:
    """What the variable is declared as; in ReadValue-3, what it is initialised with."""
    declared = node.attributes.get("variable_shape")
    if declared is None:
        return [first(node)]
    from bridge.operators.ir_texts import parse_shape

    element = node.attributes.get("variable_type") or first(node).element
    return [TensorType(element, parse_shape(declared))]


@infers("Assign")
def infer_assign(node: Node) -> list[TensorType]:
    """Assign: what it assigns."""
    return [first(node)]
