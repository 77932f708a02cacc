"""A product of one element that is reshaped to a scalar: OpenVINO moves the Reshape in front of the
product, where the empty shape ends the process that compiles the model."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

PRODUCTS = frozenset({"MatMul", "Einsum"})
"""Operators that OpenVINO takes for a product of matrices."""


def squeezed(b: Builder, node: Node, place: Place) -> Result:
    """The product without its axes. They are all of size 1, since a scalar has one element."""
    data, sizes = node.inputs
    assert data is not None and sizes is not None
    if sizes.shape != (0,) or not data.rank or not _is_of_product(data):
        return None
    return b.op("Squeeze", data, [*range(data.rank)])


def _is_of_product(value: Value) -> bool:
    """Whether a product makes a value, perhaps by way of operators that read one computed value."""
    while (made := value.producer) is not None and not made.bodies:
        if made.op in PRODUCTS:
            return True
        computed = [v for v in made.inputs if v is not None and v.constant is None]
        if len(computed) != 1:
            return False
        value = computed[0]
    return False


QUIRK = Quirk(
    releases="2026.4",
    symptom="A MatMul of one row and one column that is reshaped to a scalar, at once or behind "
    "operators of one input, ends the process that compiles the model.",
    fires="At a Reshape to a scalar of a product, or of what operators of one computed input make "
    "of one.",
    safe="What becomes a scalar has one element, so all its axes have size 1 and are taken away.",
    cost="none: a Squeeze takes the place of the Reshape",
    run=rewriting("Reshape", by=squeezed),
)
