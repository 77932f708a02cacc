"""A logical reduction along axes that are computed."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node
from bridge.neutral.types import BOOL, I32
from bridge.operators import Result
from bridge.operators.builder_helpers import cast
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

OF_NUMBERS = {"ReduceLogicalAnd": "ReduceMin", "ReduceLogicalOr": "ReduceMax"}


def of_numbers(b: Builder, node: Node, place: Place) -> Result:
    """The least or greatest of zeros and ones."""
    x, axes = node.inputs
    assert x is not None
    if integers(axes) is not None:
        return None
    return cast(b, b.op(OF_NUMBERS[node.op], cast(b, x, I32), axes, **node.attributes), BOOL)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A logical reduction along axes that are computed does not compile: evaluate() is not "
    "implemented.",
    cost="two Converts",
    run=rewriting(*OF_NUMBERS, by=of_numbers),
)
