"""A matrix product over an axis of size 0. The result is zeros, but the CPU plugin gives unset
memory or does not compile the product."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def sum_of_sums(b: Builder, node: Node, place: Place) -> Result:
    """The sums of both factors over this axis, which are zeros, broadcast to the shape of the
    product."""
    one, other = (value for value in node.inputs if value is not None)
    if not one.rank or not other.rank:
        return None
    first = -2 if node.attributes.get("transpose_a") and one.rank > 1 else -1
    second = -1 if node.attributes.get("transpose_b") or other.rank == 1 else -2
    if 0 not in (one.dims[first], other.dims[second]):
        return None
    rows, columns = _sum(b, one, first), _sum(b, other, second)
    if other.rank > 1:
        rows = b.unsqueeze(rows, -1)
    if one.rank > 1:
        columns = b.unsqueeze(columns, -2)
    return rows + columns


def _sum(b: Builder, value: Value, axis: int) -> Value:
    dims = list(value.dims)
    del dims[axis]
    if is_static(tuple(dims)):
        return b.zeros(value, *(dim for dim in dims if isinstance(dim, int)))
    return b.op("ReduceSum", value, [axis], keepdims=False)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A MatMul over an axis of size 0 gives numbers from unset memory.",
    fires="At a MatMul over an axis of known size 0.",
    safe="A sum over an empty axis is 0, for products too. The two sums broadcast to the shape of "
    "the product.",
    cost="none: two ReduceSums and an Add take its place",
    run=rewriting("MatMul", by=sum_of_sums),
)
