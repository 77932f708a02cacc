"""OneHot with negative indices that count from the end. Older releases lack this attribute."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def counted_before(b: Builder, node: Node, place: Place) -> Result:
    """OneHot-1 of indices from the start. Negative indices get the depth added."""
    indices, depth, on, off = node.inputs
    if node.attributes["negative_indices_mode"] != "normalize":
        return None
    assert isinstance(indices, Value) and isinstance(depth, Value)
    indices = b.from_the_front(indices, depth)
    axis = node.attributes["axis"]
    return b.op(
        "ir::OneHot", indices, depth, on, off, axis=axis, negative_indices_mode="ignore_negative"
    )


def _one_hots(b: Builder, node: Node) -> Iterator[Value]:
    """OneHot of the indices before the addition."""
    indices, *others = node.inputs
    made = indices.producer if indices is not None else None
    if made is not None and made.op == "Where":
        attributes = {**node.attributes, "negative_indices_mode": "normalize"}
        yield b.op("ir::OneHot", made.inputs[2], *others, **attributes)


QUIRK = Quirk(
    releases="2024.0 to 2025.3",
    symptom="These releases lack OneHot-16, and do not read the file.",
    fires="At a OneHot-16 with the mode in which negative indices count from the end.",
    safe="An index below 0 selects the same place as this index plus the depth.",
    cost="an Add, a Less and a Select before OneHot. Only for those releases.",
    run=rewriting("ir::OneHot", by=counted_before),
    guess={"ir::OneHot": _one_hots},
)
