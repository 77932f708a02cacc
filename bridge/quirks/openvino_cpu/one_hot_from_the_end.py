"""OneHot whose negative indices count from the end: an attribute that older releases have not."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def counted_before(b: Builder, node: Node, place: Place) -> Result:
    """The depth is added to negative indices before; OneHot-1 does the rest."""
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
    """OneHot of the indices as they were."""
    indices, *others = node.inputs
    made = indices.producer if indices is not None else None
    if made is not None and made.op == "Where":
        attributes = {**node.attributes, "negative_indices_mode": "normalize"}
        yield b.op("ir::OneHot", made.inputs[2], *others, **attributes)


QUIRK = Quirk(
    releases="2024.0 to 2025.3",
    symptom="OneHot-16 is no operator of these releases, which do not read the file.",
    fires="At a OneHot-16 in whose mode negative indices count from the end.",
    safe="An index below 0 means the same place as that index plus the depth.",
    cost="Add, Less and Select before OneHot. Only for those releases.",
    run=rewriting("ir::OneHot", by=counted_before),
    guess={"ir::OneHot": _one_hots},
)
