"""Arithmetic behind a reduction. The CPU plugin fuses it into the reduction.

The fused kernel divides integers in f32. It also reads a constant with one number for each channel
along the wrong axis.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.opaque import hides, undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting

PART_OF_REDUCTION = {
    "Abs", "Add", "Cast", "Clip", "Div", "Identity", "Max", "Min", "Mul", "Neg", "Relu", "Reshape",
    "Squeeze", "Sub", "Unsqueeze",
}  # fmt: skip
"""Operators that may stand between the reduction and the arithmetic."""


def of_copies(b: Builder, node: Node, place: Place) -> Result:
    """The arithmetic on a maximum of the value with itself. The plugin does not fuse across a
    maximum."""
    operands = [value for value in node.inputs if value is not None]
    divides = (
        node.op == "Div"
        and all(value.element is not None and value.element.is_integer for value in operands)
        and any(is_known(value, place) for value in operands)
    )
    by_channel = any(v.constant is not None and v.constant.size > 1 for v in operands)
    if not divides and not by_channel:
        return None
    wanted = [
        any(divides or _keeps_channels(reduction) for reduction in reductions_behind(value))
        for value in operands
    ]
    return with_hidden(b, node, "memory", wanted)


def reductions_behind(value: Value) -> Iterator[Node]:
    """The reductions into which OpenVINO may fuse the reader of a value."""
    node = value.producer
    if node is None or value.constant is not None:  # Asking for the numbers would read weights.
        return
    if known_of(value).ints is not None or hides(node, "memory"):
        return
    if node.op.startswith("Reduce"):
        yield node
    elif node.op in PART_OF_REDUCTION:
        for before in node.inputs:
            if before is not None:
                yield from reductions_behind(before)


def _keeps_channels(reduction: Node) -> bool:
    """Whether a node reduces three axes, but not the axis of channels."""
    data, axes = reduction.inputs[0], known_of(reduction.input(1)).ints
    if data is None or data.rank not in (3, None):
        return False
    return axes is None or not {1, -2} & set(axes)


QUIRK = Quirk(
    releases="2026.4, of channels with AVX2",
    symptom="Behind a reduction, an integer Divide by a constant rounds to the nearest integer, "
    "and a constant divided by the result exchanges its operands. Behind a reduction of three axes "
    "that keeps the second, arithmetic with a constant along that axis reads wrong elements of the "
    "constant.",
    fires="At a Div of integers, if one operand comes from a reduction and OpenVINO knows one "
    "operand. At arithmetic with a constant of several elements behind a reduction of three axes "
    "that keeps the second.",
    safe="The maximum of a value with itself is the value.",
    cost="a Maximum of the reduction's result with itself",
    run=rewriting("Add", "Div", "Mul", "Sub", by=of_copies),
    undo=undone("memory"),
)
