"""quirk to be"""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.operators import Result


def all_minus_infinity(b: Builder, node: Node) -> Result:
    """Whether the greatest is -inf, as the standard's Attention asks of each row of its mask, is
    whether all are: OpenVINO's CPU plugin (2026.4) takes the lowest finite number for the greatest
    of -inf alone."""
    for greatest, other in (node.inputs, reversed(node.inputs)):
        assert greatest is not None
        reduced, bound = greatest.producer, values_of(_uncast(other))
        if reduced is None or reduced.op != "ReduceMax" or bound is None:
            continue
        if bound.size == 1 and bound.dtype.kind == "f" and np.isneginf(bound).all():
            data, *axes = reduced.inputs
            assert data is not None
            lowest = b.op("Equal", data, b.like(-np.inf, data))
            return b.op("ReduceLogicalAnd", lowest, *axes, **reduced.attributes)
    return None


def _uncast(value: Value | None) -> Value | None:
    """What a value was before conversions between types."""
    while value is not None and value.producer is not None:
        if value.producer.op not in ("Cast", "CastLike"):
            break
        value = value.producer.inputs[0]
    return value
