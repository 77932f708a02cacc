"""Places of elements. ArgMax and ArgMin are the places that a TopK gives for one element, without
its axis. Compress takes the elements at the places that NonZero gives."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import F32, F64, I32
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X = var(F32, F64, I32, where=lambda x: x.rank is not None)
"""Of the types that onnxruntime has both for."""
AXIS = var()
PLACES = op("ir::TopK", X, 1).taking(1)


@fuses(op("Squeeze", PLACES, AXIS), PLACES)
def place_of_one(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Squeeze of the indices of a TopK with k = 1 whose values are not used."""
    top, rank = match.node(PLACES), len(match[X].dims)
    axis = top.attributes["axis"]
    if uses.count(top.outputs[0]) or known_axes(match[AXIS], rank) != (axis % rank,):
        return None
    operator = "ArgMax" if top.attributes["mode"] == "max" else "ArgMin"
    place = b.op(operator, match[X], axis=axis, keepdims=False)
    return b.cast(place, top.attributes["index_element_type"])


DATA, CONDITION, ALONG = var(where=lambda x: x.rank is not None), var(rank=1), var()
CHOSEN = op("Squeeze", op("NonZero", CONDITION))


@fuses(op("Gather", DATA, CHOSEN, ALONG, batch_dims=0), CHOSEN)
def compress(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Gather of the places with a true condition, which has one element for each of the axis."""
    data, axis = match[DATA], known_of(match[ALONG]).ints
    size = None if axis is None else data.dims[axis[0] % len(data.dims)]
    if axis is None or not isinstance(size, int) or match[CONDITION].dims != (size,):
        return None
    return b.op("Compress", data, match[CONDITION], axis=axis[0])
