"""A Tile with computed repeats."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind


def broadcast_instead(b: Builder, node: Node, place: Place) -> Result:
    """A Reshape to two axes for each axis, a broadcast of the first one, and a Reshape of each
    pair."""
    x, repeats = node.inputs
    assert x is not None and repeats is not None
    if known_of(repeats).ints is not None or x.rank is None or x.rank == 0:
        return None
    repeats = b.as_i64(repeats)
    dims = b.op("Shape", x)
    ones = b.constant([1] * x.rank)
    pairs = (
        b.op("Concat", *(b.unsqueeze(v, 1) for v in two), axis=1)
        for two in ((ones, dims), (repeats, dims))
    )
    before, after = (b.op("Reshape", pair, [-1]) for pair in pairs)
    spread = b.op("Expand", b.op("Reshape", x, before, allowzero=True), after)
    return b.op("Reshape", spread, dims * repeats, allowzero=True)


def _tiles(b: Builder, node: Node) -> Iterator[Value]:
    """The Tile by the factors of the sizes."""
    sizes = behind(node.input(1), "Mul")
    spread = behind(node.inputs[0], "Expand")
    pairs = behind(spread.inputs[0], "Reshape") if spread is not None else None
    if sizes is not None and pairs is not None:
        yield b.op("Tile", pairs.inputs[0], sizes.inputs[1])


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Tile with computed repeats gives unset memory.",
    fires="At a Tile with computed repeats.",
    safe="An axis of size 1 in front of each axis is broadcast to the number of repeats. Both axes "
    "together are the repeated axis.",
    cost="two Reshapes and a Broadcast, and the arithmetic of their shapes",
    run=rewriting("Tile", by=broadcast_instead),
    guess={"Reshape": _tiles},
)
