"""A product with one element, reshaped to a scalar.

OpenVINO moves the Reshape in front of the product. The empty shape crashes OpenVINO when it
compiles the model.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting

PRODUCTS = frozenset({"MatMul", "Einsum"})
"""Operators that OpenVINO treats as a matrix product."""


def squeezed(b: Builder, node: Node, place: Place) -> Result:
    """The product without its axes. A scalar has one element, so all these axes have size 1."""
    data, sizes = node.inputs
    assert data is not None and sizes is not None
    if sizes.shape != (0,) or not data.rank or not _is_of_product(data):
        return None
    return b.op("Squeeze", data, [*range(data.rank)])


def _is_of_product(value: Value) -> bool:
    """Whether a product computes a value, perhaps through operators with one computed input."""
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
    symptom="OpenVINO crashes when it compiles a MatMul of one row and one column that is reshaped "
    "to a scalar. Operators of one input may stand between.",
    fires="At a Reshape of a product to a scalar. Operators with one computed input may stand "
    "between.",
    safe="A value that becomes a scalar has one element. So all its axes have size 1, and are "
    "removed.",
    cost="none: a Squeeze takes the place of the Reshape",
    run=rewriting("Reshape", by=squeezed),
)
