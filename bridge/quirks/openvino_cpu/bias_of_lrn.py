"""The bias of an LRN, which the CPU plugin converts to an integer."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def with_bias_of_one(b: Builder, node: Node, place: Place) -> Result:
    """(bias + sum)^-beta = bias^-beta (1 + sum / bias)^-beta."""
    data, axes = node.inputs
    attributes = node.attributes
    bias, alpha = attributes["bias"], attributes["alpha"]
    if bias == int(bias) or bias <= 0:
        return None
    y = b.op("LRN", data, axes, **{**attributes, "bias": 1.0, "alpha": alpha / bias})
    factor: float = bias ** -attributes["beta"]
    return y * factor


QUIRK = Quirk(
    releases="2026.4",
    symptom="An LRN converts its bias to an integer: 1 for 1.5.",
    fires="At an LRN whose bias is above 0 and not an integer.",
    safe="(bias + s)^-beta is bias^-beta times (1 + s / bias)^-beta for a bias above 0.",
    cost="a Multiply",
    run=rewriting("LRN", by=with_bias_of_one),
)
