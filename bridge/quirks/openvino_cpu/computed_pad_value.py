"""A Pad with a computed value, which the CPU plugin ignores."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, U8
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting
from bridge.quirks.undo import behind


def put_in_place(b: Builder, node: Node, place: Place) -> Result:
    """The data padded with 0, and the value selected at the padding."""
    x, begin, end, value = (node.input(i) for i in range(4))
    mode = node.attributes["pad_mode"]
    if mode != "constant" or value is None or known_of(value).array is not None:
        return None
    inside = b.op("Expand", b.constant(1, U8), b.op("Shape", x))
    inside = b.op("ir::Pad", inside, begin, end, pad_mode=mode)
    padded = b.op("ir::Pad", x, begin, end, pad_mode=mode)
    return b.where(b.cast(inside, BOOL), padded, value)


def _pads(b: Builder, node: Node) -> Iterator[Value]:
    """The Pad with the value that the Select chooses."""
    _, padded, value = node.inputs
    pad = behind(padded, "ir::Pad")
    if pad is not None:
        yield b.op("ir::Pad", *pad.inputs[:3], value, **pad.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Pad with a computed value pads with 0.",
    fires="At a Pad in constant mode with a computed value.",
    safe="A tensor of ones is padded with 0 in the same way. Each 0 in it marks padding, which "
    "takes the value.",
    cost="another Pad, a Broadcast, a Convert and a Select",
    run=rewriting("ir::Pad", by=put_in_place),
    guess={"Where": _pads},
)
