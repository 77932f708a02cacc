"""The largest elements in ONNX's order, with the lower index first among equal elements, if
OpenVINO's stable TopK would be slow.

The time of the stable TopK grows with k times the size, because it sorts by exchanges. The unstable
TopK is much faster. A second unstable TopK therefore puts equal elements in order, with distinct
whole numbers as keys. A key combines the number of different elements in front and the index.
OpenVINO computes in 32 bits, so that for many elements two steps use two parts of the index.
"""

from math import isqrt

from bridge.neutral.types import I64, Dim, high
from bridge.operators import Builder, Value
from bridge.operators.bodies import either

FEW = 8
"""The largest number of elements for which the stable TopK is fast enough."""

SHORT = 1 << 13
"""The number of comparisons after which the stable TopK is slower than the other nodes."""

MOST = isqrt((1 << 31) - 1)
"""The largest number of elements for a 32-bit key with the number of elements in front and the
index."""

FAR = 1_600_000
"""The largest number of elements for such a key with half of the index."""


def top(
    b: Builder, x: Value, k: Value, axis: int, mode: str, sort: str = "value", stable: bool = False
) -> list[Value]:
    """The values and the indices from IR's TopK; `k` is a scalar."""
    return b.ops(
        "ir::TopK", 2, x, k, axis=axis, mode=mode, sort=sort, stable=stable, index_element_type=I64
    )


def takes_long(size: Dim, count: Dim) -> bool:
    """Whether a stable TopK of `count` among `size` elements may be slow, and another way
    exists."""
    most = _bound(size, count)
    if most is None:
        return True
    length = high(size)
    return FEW <= most <= FAR and (length is None or most * length >= SHORT)


def _bound(size: Dim, count: Dim) -> int | None:
    """The maximum number of requested elements; None if it is unknown."""
    return min((n for n in map(high, (size, count)) if n is not None), default=None)


def first_places(b: Builder, x: Value, k: Value, axis: int, mode: str) -> Value:
    """The indices of the k largest (mode "max") or smallest elements, in ascending order. They
    include all elements beyond the last selected one, and the first of the elements equal to it."""
    edge = b.op({"max": "ReduceMin", "min": "ReduceMax"}[mode], top(b, x, k, axis, mode)[0], [axis])
    behind = b.op({"max": "Less", "min": "Greater"}[mode], x, edge)
    positions = b.positions(x, axis)
    positions = b.unsqueeze(positions, *range(1, (x.rank or 1) - axis % (x.rank or 1)))
    others = b.where(behind, b.size(x, axis), b.constant(-1))
    return top(b, b.where(x.equal(edge), positions, others), k, axis, "min", "index")[1]


def in_order(b: Builder, x: Value, k: Value, axis: int, mode: str, size: Dim, count: Dim) -> Value:
    """The indices of all k elements along an axis, sorted from the largest (mode "max") or the
    smallest. Among equal elements, the lower index comes first. `size` and `count` are the upper
    bounds of their numbers."""
    most = _bound(size, count)
    if most is not None:
        return _by_numbers(b, x, k, axis, mode, most)
    (order,) = either(
        b,
        k <= MOST,
        [x, k],
        lambda inner, v: [_by_numbers(inner, v[0], v[1], axis, mode, MOST)],
        lambda inner, v: [top(inner, v[0], v[1], axis, mode, stable=True)[1]],
        ("some", "many"),
    )
    return order


def _by_numbers(b: Builder, x: Value, k: Value, axis: int, mode: str, most: int) -> Value:
    values, order = top(b, x, k, axis, mode)
    base = most if most <= MOST else isqrt(most) + 1
    for operator in ("Div", "Mod") if base < most else ("",):
        part = b.op(operator, order, base) if operator else order
        numbers = _in_front(b, values, axis) * base + part
        values, moved = top(b, numbers, k, axis, "min")
        order = b.op("GatherElements", order, moved, axis=axis)
    return order


def _in_front(b: Builder, values: Value, axis: int) -> Value:
    """The number of different values in front of each sorted value."""
    first, others = b.cut(values, axis, 0, 1), b.cut(values, axis, 0, -1)
    before = b.concat(axis, first, others)
    return b.op("CumSum", b.cast(b.op("NotEqual", values, before), I64), b.constant(axis))
