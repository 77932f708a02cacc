"""A logical reduction along computed axes."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, I32
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind

OF_NUMBERS = {"ReduceLogicalAnd": "ReduceMin", "ReduceLogicalOr": "ReduceMax"}


def of_numbers(b: Builder, node: Node, place: Place) -> Result:
    """The minimum or maximum of zeros and ones."""
    x, axes = node.inputs
    assert x is not None
    if known_of(axes).ints is not None:
        return None
    return b.cast(b.op(OF_NUMBERS[node.op], b.cast(x, I32), axes, **node.attributes), BOOL)


def _reductions(b: Builder, node: Node) -> Iterator[Value]:
    """The logical reduction, from the reduction of numbers."""
    reduced = node.inputs[0].producer if node.inputs[0] is not None else None
    for op, of_numbers in OF_NUMBERS.items():
        if reduced is not None and reduced.op == of_numbers:
            x = behind(reduced.inputs[0], "Cast")
            if x is not None:
                yield b.op(op, x.inputs[0], reduced.input(1), **reduced.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A logical reduction along computed axes does not compile: evaluate() is not "
    "implemented.",
    fires="At a logical reduction along computed axes.",
    safe="All elements are true if the minimum of zeros and ones is 1. Some element is true if the "
    "maximum is 1.",
    cost="two Converts",
    run=rewriting(*OF_NUMBERS, by=of_numbers),
    guess={"Cast": _reductions},
)
