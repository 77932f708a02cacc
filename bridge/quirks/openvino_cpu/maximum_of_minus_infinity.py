"""The maximum of -inf alone, as the standard's Attention asks for of each row of its mask."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def all_are(b: Builder, node: Node, place: Place) -> Result:
    """Whether the greatest is -inf is whether all are."""
    for greatest, other in (node.inputs, reversed(node.inputs)):
        assert greatest is not None and other is not None
        reduced, bound = greatest.producer, values_of(other.behind("Cast", "CastLike"))
        if reduced is None or reduced.op != "ReduceMax" or bound is None:
            continue
        if bound.size == 1 and bound.dtype.kind == "f" and np.isneginf(bound).all():
            data, *axes = reduced.inputs
            assert data is not None
            lowest = b.op("Equal", data, b.like(-np.inf, data))
            return b.op("ReduceLogicalAnd", lowest, *axes, **reduced.attributes)
    return None


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The ReduceMax of -inf alone is the lowest finite number, so that it does not equal "
    "-inf.",
    cost="a reduction of as many truth values",
    run=rewriting("Equal", by=all_are),
)
