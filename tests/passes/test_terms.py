"""Declared patterns: the values that fit them, and the values of their terms."""

from __future__ import annotations

import pytest

import bridge.hooks  # noqa: F401 (it registers the operators)
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Value
from bridge.neutral.rewrite import ValueUses
from bridge.neutral.terms import Found, Term, constant, op, var
from bridge.neutral.types import F32, I64, TensorType

X, Y = var(F32), var()
SQUARE = X * X
HALF = op("Split", X).taking(1)

# A pattern, and which of these values fit it: x + |x| * 2, twice x, x * x, the second part of x.
CASES: list[tuple[Term, str]] = [
    (abs(X) * 2 + X, "sum"),
    (X + 2 * abs(X), "sum"),
    (X + 3 * abs(X), ""),
    (op("Add", abs(Y) * constant(), X, None), "sum"),
    ((abs(X) | (abs(X).shared() * 2)) + X, "sum"),
    (op("Sub | Add", X, Y), "sum double"),
    (X + X, "double"),
    (SQUARE, "square"),
    (abs(X) | SQUARE, "square"),
    (var(rank=2) * Y, "square"),
    (var(rank=3) * Y, ""),
    (var(I64) * Y, ""),
    (HALF, "half"),
    (op("Split", X, axis=1).taking(1), "half"),
    (op("Split", X, axis=0).taking(1), ""),
    (op("Split", X, Y), ""),
]


@pytest.mark.parametrize(("pattern", "fitting"), CASES)
@pytest.mark.parametrize("used_elsewhere", [False, True])
def test_what_fits(pattern: Term, fitting: str, used_elsewhere: bool) -> None:
    graph = Graph([Value(TensorType(F32, (3, 4)), ["x"])])
    (x,) = graph.inputs
    b = Builder(graph.nodes)
    absolute = b.op("Abs", x)
    found = {
        "sum": b.op("Add", x, b.op("Mul", absolute, b.constant(2.0))),
        "double": b.op("Add", x, x),
        "square": b.op("Mul", x, x),
        "half": b.ops("Split", 2, x, axis=1)[1],
    }
    graph.outputs = [*found.values(), *([absolute] if used_elsewhere else [])]
    count = ValueUses(graph).count
    fits = {
        name: next(pattern.matches(value, Found(), count, root=True), None)
        for name, value in found.items()
    }
    wanted = set(fitting.split())
    if used_elsewhere and pattern in {case for case, _ in CASES[:4]}:
        wanted.clear()  # A value with other users is no part of a pattern.
    assert {name for name, match in fits.items() if match is not None} == wanted
    for name, match in fits.items():
        if match is not None:
            assert match[pattern] is found[name]
            assert match.get(X, x) is x
