"""The sizes of the inputs of two models of a check."""

from __future__ import annotations

from collections.abc import Mapping

from bridge.check.inputs import keys_of
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model, Value
from bridge.neutral.types import Dim, Interval, TensorType, high, innermost, low


def shared_sizes(first: Model, other: Model) -> dict[str, int | Interval]:
    """The sizes and ranges that the inputs of `other` give to open dimensions of `first`, by their
    keys in `Recipe.sizes`."""
    sizes: dict[str, int | Interval] = {}
    for value, twin in _inputs(first, other).items():
        own, its = innermost(value.type).shape, innermost(twin.type).shape
        if its is None or (own is not None and len(own) != len(its)):
            continue
        for axis, dim in enumerate(its):
            before: Dim = own[axis] if own is not None else Interval(0, None)
            if not isinstance(before, int) and _narrows(dim, before):
                assert not isinstance(dim, str)
                key = before if isinstance(before, str) else f"{value.name}.{axis}"
                sizes.setdefault(key, dim)
    return sizes


def with_sizes(model: Model, sizes: Mapping[str, int | Interval]) -> Model:
    """A copy of the model whose inputs have these sizes, by the keys of `Recipe.sizes`."""
    model = clone_model(model)
    for value in model.graph.inputs:
        if isinstance(value.type, TensorType) and value.shape is not None:
            dims = [
                dim
                if isinstance(dim, int)
                else sizes.get(dim if isinstance(dim, str) else key, dim)
                for dim, key in zip(value.shape, keys_of(value), strict=True)
            ]
            value.type = TensorType(value.element, tuple(dims))
    return model


def _narrows(dim: Dim, other: Dim) -> bool:
    """Whether a dimension leaves fewer sizes open than another one."""
    return (low(dim), high(dim)) != (low(other), high(other)) and not isinstance(dim, str)


def _inputs(first: Model, other: Model) -> Mapping[Value, Value]:
    """The inputs of both, by name, or else by position if both have as many."""
    names = {name: value for value in other.graph.inputs for name in value.names}
    found = {
        value: next((names[name] for name in value.names if name in names), None)
        for value in first.graph.inputs
    }
    if None in found.values() and len(found) == len(other.graph.inputs):
        return dict(zip(first.graph.inputs, other.graph.inputs, strict=True))
    return {value: twin for value, twin in found.items() if twin is not None}
