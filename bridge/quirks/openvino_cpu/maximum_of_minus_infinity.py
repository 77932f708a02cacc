"""The maximum of elements that are all -inf. The Attention of the standard computes it for each row
of its mask."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def all_are(b: Builder, node: Node, place: Place) -> Result:
    """A test whether all elements are -inf, instead of a test whether the maximum is."""
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
    symptom="The ReduceMax of elements that are all -inf is the lowest finite number, which does "
    "not equal -inf.",
    fires="At an Equal of a ReduceMax of floats and the constant -inf.",
    safe="The maximum is -inf if all elements are, also without elements. With a NaN, both are "
    "false.",
    cost="a reduction over the same number of truth values",
    run=rewriting("Equal", by=all_are),
)
