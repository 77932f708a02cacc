"""What changes nothing, and is there so that an engine sees something else in it."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.passes.recompose.uses import Uses, either_way

_BETWEEN = ("Cast", "Floor", "Squeeze")


def nothing_added(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x + floor(r), r a random number from 0 up to less than 1, is x."""
    for value, other in either_way(node):
        if other.rank is not None and other.rank <= (value.rank or 0) and _is_nothing(other, uses):
            return value
    return None


def nothing_expanded(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x in the shape of x is x."""
    value, sizes = node.inputs
    shape = sizes.producer if sizes is not None else None
    if shape is None or shape.op != "Shape" or shape.inputs[0] is not value:
        return None
    whole = not shape.attributes.get("start") and shape.attributes.get("end") is None
    return value if whole else None


def _is_nothing(value: Value, uses: Uses) -> bool:
    """Whether a value is one such number, rounded."""
    rounded = False
    node = uses.sole(value, *_BETWEEN)
    while node is not None and node.op in _BETWEEN:
        rounded = rounded or node.op == "Floor"
        node = uses.sole(node.inputs[0], *_BETWEEN, "ir::RandomUniform")
    if node is None or not rounded or node.outputs[0].shape != (1,):
        return False
    low, high = (None if v is None else v.constant for v in node.inputs[1:3])
    if low is None or high is None:
        return False
    return bool(low.array() == 0 and 0 < high.array() <= 1)
