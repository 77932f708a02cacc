"""Optionals in older operator sets, which support fewer input types."""

import numpy as np

from bridge.neutral.inference import infers
from bridge.neutral.types import OptionalType, Type
from bridge.operators import Builder, Node, Value, legalizes
from bridge.operators.sequence.sequences import held


def _is_plain(b: Builder, node: Node) -> bool:
    """Whether the input is not an optional. The operators accept such inputs since operator set
    18."""
    value = node.input(0)
    return b.opset < 18 and (value is None or not isinstance(value.type, OptionalType))


@legalizes("OptionalHasElement", target="onnx")
def has_element(b: Builder, node: Node) -> Value | None:
    """OptionalHasElement (15 to 28): true for a tensor or a sequence, false for an absent input."""
    return b.constant(np.array(node.input(0) is not None)) if _is_plain(b, node) else None


@legalizes("OptionalGetElement", target="onnx")
def get_element(b: Builder, node: Node) -> Value | None:
    """OptionalGetElement (15 to 28): the element of a tensor or a sequence is the value itself."""
    return b.op("Identity", node.inputs[0]) if _is_plain(b, node) else None


@infers("Optional")
def infer_optional(node: Node) -> list[Type]:
    """Optional: the type of the input, or the type in its attribute. The standard infers none
    without an element type."""
    value = node.input(0)
    type = node.attributes.get("type") if value is None else value.type
    return [] if type is None else [OptionalType(type)]


@infers("OptionalGetElement")
def infer_optional_get_element(node: Node) -> list[Type]:
    """OptionalGetElement: the type of the optional's element, or the type of the value itself."""
    return [held(node.input(0))]
