"""Arithmetic with a constant of one element that has a higher rank than the other operand.

If the plugin fuses it into an activation or a normalization, it no longer broadcasts.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.quirk import ARITHMETIC, Place, Quirk, rewriting


def of_equal_rank(b: Builder, node: Node, place: Place) -> Result:
    """The arithmetic with axes of size 1 added to the other operand."""
    first, second = node.inputs
    for value, constant in ((first, second), (second, first)):
        if value is None or constant is None or not constant.shape or value.rank is None:
            continue
        lacking = len(constant.shape) - value.rank
        if lacking <= 0 or set(constant.shape) != {1} or is_known(value, place):
            continue
        if is_known(constant, place):
            longer = b.unsqueeze(value, *range(lacking))
            operands = [longer if operand is value else operand for operand in node.inputs]
            return b.op(node.op, *operands, **node.attributes)
    return None


def _without(b: Builder, node: Node) -> Iterator[Value]:
    """The arithmetic on the operand without the added axes."""
    for place, value in enumerate(node.inputs):
        made = value.producer if value is not None else None
        if made is not None and made.op == "Unsqueeze" and known_of(made.inputs[1]).ints:
            operands = list(node.inputs)
            operands[place] = made.inputs[0]
            yield b.op(node.op, *operands, **node.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="Arithmetic fused into a Clamp, HSwish, Gelu, SoftPlus, MVN or similar gives a result "
    "of too low a rank. This happens if a constant of one element has the higher rank.",
    fires="At arithmetic with a constant of one element, if its rank is higher than the other "
    "operand's.",
    safe="Broadcasting gives the other operand the same axes of size 1.",
    cost="an Unsqueeze",
    run=rewriting(*ARITHMETIC, by=of_equal_rank),
    guess=dict.fromkeys(ARITHMETIC, _without),
)
