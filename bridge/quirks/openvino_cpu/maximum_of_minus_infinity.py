"""The maximum of -inf alone, as the standard's Attention asks for of each row of its mask."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def all_are(b: Builder, node: Node, place: Place) -> Result:
    """Whether the greatest is -inf is whether all are."""
    for greatest, other in (node.inputs, reversed(node.inputs)):
        assert greatest is not None and other is not None
        reduced, bound = greatest.producer, known_of(other.behind("Cast", "CastLike")).array
        if reduced is None or reduced.op != "ReduceMax" or bound is None:
            continue
        if other.rank is None or greatest.rank is None:
            continue
        if bound.size == 1 and bound.dtype.kind == "f" and np.isneginf(bound).all():
            data, *axes = reduced.inputs
            assert data is not None
            lowest = data.equal(-np.inf)
            all_lowest = b.op("ReduceLogicalAnd", lowest, *axes, **reduced.attributes)
            return b.unsqueeze(all_lowest, *range(other.rank - greatest.rank))
    return None


QUIRK = Quirk(
    releases="2026.4",
    symptom="The ReduceMax of -inf alone is the lowest finite number, so that it does not equal "
    "-inf.",
    fires="At an Equal of a ReduceMax of floats and the constant -inf.",
    safe="The greatest is -inf where all are, over no elements too; with a NaN both are false.",
    cost="a reduction of as many truth values",
    run=rewriting("Equal", by=all_are),
)
