"""The start of a variable, if the model does not give one: zeros, with sizes for which the first
call runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Value
from bridge.neutral.inference.constraints import equal_sizes, sizes_that_suit
from bridge.neutral.types import Dim, Shape, TensorType, low

Alike = Mapping[str, Dim]
"""Symbols of sizes, with another symbol or the number that the size has to be."""


def sizes_alike(graph: Graph, broadcast: bool = True) -> Alike:
    """Sizes that operators outside of bodies need to be equal, or broadcast. These operators would
    refuse a state whose size is 0 there."""
    alike: dict[str, Dim] = {}
    for node in graph.nodes:
        for pairs in (equal_sizes, sizes_that_suit)[: 1 + broadcast]:
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
    """The number of sequences: the size of the first axis of the other inputs."""
    for value in inputs:
        if value.shape and not isinstance(value.shape[0], int):
            return value.shape[0]
    return next((value.shape[0] for value in inputs if value.shape), None)


def sized(state: Value, equal: Alike) -> TensorType:
    """The type of a state, with the numbers that its sizes are equal to."""
    roots = ((dim, _root(dim, equal)) for dim in state.dims)
    dims = tuple(root if isinstance(root, int) else dim for dim, root in roots)
    return TensorType(state.element, dims)


def start_of(state: Value, inputs: Sequence[Value], alike: Alike, b: Builder) -> Value:
    """Zeros, before the first call. An open dimension has the size of an input's dimension with
    the same symbol, or with a size that has to be equal. Otherwise it is as small as it may be: a
    cache is empty at first. If the inputs tell the number of sequences, the first axis has it."""
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
    """The input and axis that have the size of a dimension. They have the same symbol, or a symbol
    that has to be equal. If a state has no symbols, its first axis is like an input's first."""
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
