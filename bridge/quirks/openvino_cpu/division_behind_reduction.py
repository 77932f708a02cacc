"""The division of integers behind a reduction, which the CPU plugin does as a part of that, in
f32."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.opaque import hides, undone, with_copies
from bridge.quirks.quirk import Place, Quirk, rewriting

PART_OF_REDUCTION = {
    "Abs", "Add", "Cast", "Clip", "Div", "Identity", "Max", "Min", "Mul", "Neg", "Relu", "Reshape",
    "Squeeze", "Sub", "Unsqueeze",
}  # fmt: skip
"""Operators that may stand between the reduction and the division."""


def of_copies(b: Builder, node: Node, place: Place) -> Result:
    """A maximum with itself in between, of which the division is no part."""
    operands = [value for value in node.inputs if value is not None]
    if any(value.element is None or not value.element.is_integer for value in operands):
        return None
    if not any(is_known(value, place) for value in operands):
        return None
    return with_copies(b, node, operands, lambda value: any(reductions_behind(value)))


def reductions_behind(value: Value) -> Iterator[Node]:
    """The reductions that OpenVINO may take a value to be a part of."""
    node = value.producer
    if node is None or integers(value) is not None or hides(node, "memory"):
        return
    if node.op.startswith("Reduce"):
        yield node
    elif node.op in PART_OF_REDUCTION:
        for before in node.inputs:
            if before is not None:
                yield from reductions_behind(before)


QUIRK = Quirk(
    releases="2026.4",
    symptom="Behind a reduction, an integer Divide by a constant rounds to the nearest, and one of "
    "a constant exchanges its operands.",
    fires="At a Div of integers of which one operand follows from a reduction and one is known to "
    "OpenVINO.",
    safe="The greatest of a value and itself is the value.",
    cost="a Maximum of the reduction's result with itself",
    run=rewriting("Div", by=of_copies),
    undo=undone("memory"),
)
