"""The largest elements in ONNX's order, the lower index first among equal ones, where OpenVINO's
stable TopK would take long.

That takes time in proportion to k times the size, as sorting by exchanges does; the unstable one
takes hardly any. So equal elements are put in order by a second one, of whole numbers that all
differ: how many different elements are in front, then the index. OpenVINO computes in 32 bits, so
that for many elements the index is taken in two parts.
"""

from __future__ import annotations

from math import isqrt

from bridge.neutral.types import I64, Dim, high
from bridge.operators import Builder, Value
from bridge.operators.branches import either

FEW = 8
"""Elements that the stable TopK finds quickly enough."""

SHORT = 1 << 13
"""How many comparisons the stable TopK makes as quickly as the nodes that avoid it run."""

MOST = isqrt((1 << 31) - 1)
"""Elements of which a number of 32 bits holds how many are in front, and the index."""

FAR = 1_600_000
"""Elements of which it holds how many are in front, and half of the index."""


def top(
    b: Builder, x: Value, k: Value, axis: int, mode: str, sort: str = "value", stable: bool = False
) -> list[Value]:
    """The values and the indices of IR's TopK; `k` is a scalar."""
    return b.ops(
        "ir::TopK", 2, x, k, axis=axis, mode=mode, sort=sort, stable=stable, index_element_type=I64
    )


def takes_long(size: Dim, count: Dim) -> bool:
    """Whether a stable TopK of so many elements of an axis may take long, and another way is
    known."""
    most = _bound(size, count)
    if most is None:
        return True
    length = high(size)
    return FEW <= most <= FAR and (length is None or most * length >= SHORT)


def _bound(size: Dim, count: Dim) -> int | None:
    """How many elements are asked for at most; None where that is not known."""
    return min((n for n in map(high, (size, count)) if n is not None), default=None)


def first_places(b: Builder, x: Value, k: Value, axis: int, mode: str) -> Value:
    """The indices of the k largest elements (mode "max") or least ones, in ascending order: all
    beyond the last of them, and the first of those that equal it."""
    edge = b.op({"max": "ReduceMin", "min": "ReduceMax"}[mode], top(b, x, k, axis, mode)[0], [axis])
    behind = b.op({"max": "Less", "min": "Greater"}[mode], x, edge)
    positions = b.positions(x, axis)
    positions = b.unsqueeze(positions, *range(1, (x.rank or 1) - axis % (x.rank or 1)))
    others = b.where(behind, b.size(x, axis), b.constant(-1))
    return top(b, b.where(x.equal(edge), positions, others), k, axis, "min", "index")[1]


def in_order(b: Builder, x: Value, k: Value, axis: int, mode: str, size: Dim, count: Dim) -> Value:
    """The indices of all k elements along an axis, the largest first (mode "max") or the least,
    and the lower index first among equal ones. `size` and `count` say how many they may be."""
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
    """How many different values are in front of each of those that are sorted."""
    first, others = b.cut(values, axis, 0, 1), b.cut(values, axis, 0, -1)
    before = b.concat(axis, first, others)
    return b.op("CumSum", b.cast(b.op("NotEqual", values, before), I64), b.constant(axis))
