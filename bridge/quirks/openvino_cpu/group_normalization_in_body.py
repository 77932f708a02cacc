"""GroupNormalization in a body: the CPU plugin has no kernel for it, and takes it apart in the
outermost graph only."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def taken_apart(b: Builder, node: Node, place: Place) -> Result:
    """Its parts, in a body."""
    return None if place.body is None else in_parts(b, node)


def in_parts(b: Builder, node: Node) -> Result:
    """An MVN over each group, a scale and a bias."""
    data, scale, bias = node.inputs
    if data is None or data.rank is None:
        return None
    assert scale is not None and bias is not None
    grouped = b.reshape(data, 0, node.attributes["num_groups"], -1)
    eps = node.attributes["epsilon"]
    settings = {"eps": eps, "eps_mode": "inside_sqrt", "normalize_variance": True}
    even = b.op("Reshape", b.op("MVN", grouped, [2], **settings), b.op("Shape", data))
    scaled = b.op("Mul", even, _along_channels(b, scale, data.rank))
    return b.op("Add", scaled, _along_channels(b, bias, data.rank))


def _along_channels(b: Builder, vector: Value, rank: int) -> Value:
    return b.reshape(vector, 1, -1, *(1,) * (rank - 2))


QUIRK = Quirk(
    releases="2026.4",
    symptom="GroupNormalization in the body of an If or a Loop does not compile: evaluate() is not "
    "implemented.",
    fires="At a GroupNormalization of known rank in a body.",
    safe="The standard defines it so: each group less its mean, over its deviation; then times "
    "the scale, plus the bias.",
    cost="six operators for one",
    run=rewriting("GroupNormalization", by=taken_apart),
)
