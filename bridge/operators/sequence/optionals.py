"""Optionals in older operator sets, which support fewer input types."""

import numpy as np

from bridge.neutral.types import OptionalType
from bridge.operators import Builder, Node, Value, legalizes


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
