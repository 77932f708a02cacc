"""The maximum of -inf alone, as the standard's Attention asks for of each row of its mask."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder, values_of
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def all_are(b: Builder, node: Node, place: Place) -> Result:
    """Whether the greatest is -inf is whether all are."""
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


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="The ReduceMax of -inf alone is the lowest finite number, so that it does not equal "
    "-inf.",
    cost="a reduction of as many truth values",
    run=rewriting("Equal", by=all_are),
)
