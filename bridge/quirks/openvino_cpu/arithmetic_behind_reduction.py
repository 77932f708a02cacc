"""Arithmetic behind a reduction, which the CPU plugin does as a part of that: the division of
integers in f32, and with a constant for each channel along another axis."""

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
    """A maximum with itself in between, of which the arithmetic is no part."""
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
    """The reductions that OpenVINO may take a value to be a part of."""
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
    """Whether three axes are reduced, the second of them not."""
    data, axes = reduction.inputs[0], known_of(reduction.input(1)).ints
    if data is None or data.rank not in (3, None):
        return False
    return axes is None or not {1, -2} & set(axes)


QUIRK = Quirk(
    releases="2026.4, of channels with AVX2",
    symptom="Behind a reduction, an integer Divide by a constant rounds to the nearest, and one of "
    "a constant exchanges its operands. Behind one of three axes that keeps the second, arithmetic "
    "with a constant along that axis takes wrong elements of the constant.",
    fires="At a Div of integers of which one operand follows from a reduction and one is known to "
    "OpenVINO; at arithmetic of a constant of several elements with what a reduction of three axes "
    "leads to, which keeps the second.",
    safe="The greatest of a value and itself is the value.",
    cost="a Maximum of the reduction's result with itself",
    run=rewriting("Add", "Div", "Mul", "Sub", by=of_copies),
    undo=undone("memory"),
)
