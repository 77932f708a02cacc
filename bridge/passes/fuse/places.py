"""Places of elements: ArgMax and ArgMin are that which a TopK gives of one element, without its
axis; Compress takes what is at those that NonZero gives."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes, known_integers
from bridge.neutral.types import F32, F64, I32
from bridge.passes.fuse.uses import Uses


def place_of_one(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Squeeze of the indices of a TopK with k = 1, of which the values are not used; in the types
    that onnxruntime has both for."""
    top = uses.single_use(node.inputs[0], "ir::TopK")
    x = top.inputs[0] if top is not None else None
    if top is None or x is None or x.rank is None or x.element not in (F32, F64, I32):
        return None
    values, places = top.outputs
    axis = top.attributes["axis"] % x.rank
    if node.inputs[0] is not places or uses.count(values) or known_integers(top.inputs[1]) != (1,):
        return None
    if known_axes(node.input(1), x.rank) != (axis,):
        return None
    b.name = top.name
    op = "ArgMax" if top.attributes["mode"] == "max" else "ArgMin"
    made = b.op(op, x, axis=top.attributes["axis"], keepdims=False)
    return b.cast(made, top.attributes["index_element_type"])


def compress(b: Builder, node: Node, uses: Uses) -> Value | None:
    """Gather of the places where a condition holds, which has an element for each of the axis."""
    x, chosen, axis = node.inputs
    squeeze = uses.single_use(chosen, "Squeeze")
    places = uses.single_use(squeeze.inputs[0], "NonZero") if squeeze is not None else None
    along, condition = known_integers(axis), places.inputs[0] if places is not None else None
    if condition is None or condition.rank != 1 or x is None or along is None or x.rank is None:
        return None
    size = x.dims[along[0] % x.rank]
    if not isinstance(size, int) or condition.dims != (size,) or node.attributes["batch_dims"]:
        return None
    assert squeeze is not None
    b.name = squeeze.name
    return b.op("Compress", x, condition, axis=along[0])
