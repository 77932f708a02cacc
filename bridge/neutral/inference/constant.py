"""Constant: the type and, for shape-like values, the content of its tensor."""

from __future__ import annotations

from bridge.neutral.graph import Node
from bridge.neutral.inference import KNOWN_VALUE_LIMIT, infers, knows
from bridge.neutral.types import TensorType, Type


@infers("Constant")
def infer_constant(node: Node) -> list[Type]:
    """Constant: the type of its tensor."""
    tensor = node.attributes["value"]
    return [TensorType(tensor.element, tensor.shape)]


@knows("Constant")
def constant_content(node: Node) -> tuple[int | str | None, ...] | None:
    """Constant: the elements of a short vector or a scalar of integers or bools."""
    tensor = node.attributes["value"]
    if tensor.element.kind not in ("int", "uint", "bool") or len(tensor.shape) > 1:
        return None
    if tensor.size > KNOWN_VALUE_LIMIT:
        return None
    return tuple(int(x) for x in tensor.array().reshape(-1))
