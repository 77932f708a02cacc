"""IR's variables: ReadValue and Assign."""

from bridge.neutral.inference import first, infers
from bridge.neutral.types import TensorType
from bridge.operators import Node


@infers("ReadValue")
def infer_read_value(node: Node) -> list[TensorType]:
    """ReadValue: the declared type of the variable. In ReadValue-3, it is the type of the initial
    value."""
    declared = node.attributes.get("variable_shape")
    if declared is None:
        return [first(node)]
    from bridge.operators.ir_texts import parse_shape

    element = node.attributes.get("variable_type") or first(node).element
    return [TensorType(element, parse_shape(declared))]
