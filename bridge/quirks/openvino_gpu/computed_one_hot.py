"""OneHot whose depth or values are computed. The GPU plugin wants constants."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def selected(b: Builder, node: Node, place: Place) -> Result:
    """A selection by whether the index is the number of the place."""
    indices, depth, on, off = node.inputs
    assert indices is not None and depth is not None and on is not None and off is not None
    rank, axis = indices.rank, node.attributes["axis"]
    if rank is None or all(map(_is_known, (depth, on, off))):
        return None
    if node.attributes["negative_indices_mode"] == "normalize":
        indices = b.from_the_front(indices, depth)
    axis %= rank + 1
    zero, one = (b.cast(b.constant(number), indices.element) for number in (0, 1))
    places = b.op("Range", zero, b.cast(b.scalar(depth), indices.element), one)
    places = b.reshape(places, -1, *[1] * (rank - axis))
    return b.where(b.unsqueeze(indices, axis).equal(places), on, off)


def _is_known(value: Value) -> bool:
    return value.constant is not None or known_of(value).array is not None


QUIRK = Quirk(
    releases="2026.4",
    symptom="A model with OneHot does not compile if the depth or a value is no constant.",
    fires="At such a OneHot of indices of known rank.",
    safe="OneHot has the one value where the index is the number of the place, and the other "
    "value elsewhere.",
    cost="a Range, an Equal and a Select for OneHot; they stay on the way back to ONNX",
    run=rewriting("ir::OneHot", by=selected),
)
