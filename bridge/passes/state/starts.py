"""What a variable starts with, where the model does not say: zeros, of sizes with which the first
call runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Value
from bridge.neutral.inference.constraints import equal_sizes, sizes_that_suit
from bridge.neutral.types import Dim, Shape, low

Alike = Mapping[str, Dim]
"""Symbols of sizes, with another symbol or the number that the size has to be."""


def sizes_alike(graph: Graph) -> Alike:
    """What operators outside of bodies take as equal, or broadcast: a state that has nothing in it
    could not be taken there."""
    alike: dict[str, Dim] = {}
    for node in graph.nodes:
        for pairs in (equal_sizes, sizes_that_suit):
            for one, other in pairs(node):
                a, b = _root(one, alike), _root(other, alike)
                if a != b and isinstance(a, str) and isinstance(b, str | int):
                    alike[a] = b
                elif a != b and isinstance(b, str) and isinstance(a, int):
                    alike[b] = a
    return alike


def _root(dim: Dim, alike: Alike) -> Dim:
    while isinstance(dim, str) and dim in alike:
        dim = alike[dim]
    return dim


def sequences_of(inputs: Sequence[Value]) -> Any:
    """The number of sequences: what the first axis of the other inputs has."""
    for value in inputs:
        if value.shape and not isinstance(value.shape[0], int):
            return value.shape[0]
    return next((value.shape[0] for value in inputs if value.shape), None)


def start_of(state: Value, inputs: Sequence[Value], alike: Alike, b: Builder) -> Value:
    """Zeros, before the first call. An open dimension is that of the input which has one of its
    symbol or has to be as large, or as small as it may be: a cache has nothing in it at first.
    Where the inputs say how many sequences there are, there are as many."""
    zero, parts = b.like(0, state), list[Value]()
    if not state.dims:
        return zero
    for index, dim in enumerate(state.dims):
        place = None if isinstance(dim, int) else _axis_of(dim, index, state.dims, inputs, alike)
        if place is None:
            root = _root(dim, alike)
            fixed = None if index or isinstance(dim, int) else sequences_of(inputs)
            known = root if isinstance(root, int) else fixed
            parts.append(b.constant([known if isinstance(known, int) else low(dim)]))
            continue
        value, axis = place
        parts.append(b.op("Gather", b.op("Shape", value), [axis], 0))
    return b.op("Expand", zero, b.op("Concat", *parts, axis=0))


def _axis_of(
    dim: Any, index: int, shape: Shape, inputs: Sequence[Value], alike: Alike
) -> tuple[Value, int] | None:
    """The input and axis that have the size of a dimension: the same symbol, one that has to be
    equal, or, for the first axis of an input that has no symbols, the first of another."""
    symbols = any(isinstance(other, str) for other in shape or ())
    for wanted, known in ((dim, {}), (_root(dim, alike), alike)):
        for value in inputs if isinstance(dim, str) else ():
            for axis, other in enumerate(value.shape or ()):
                if isinstance(other, str) and _root(other, known) == wanted:
                    return value, axis
    for value in inputs:
        if index == 0 and not symbols and value.shape and not isinstance(value.shape[0], int):
            return value, 0
    return None
