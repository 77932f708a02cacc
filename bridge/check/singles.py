"""The original and a version of it in 32-bit floats instead of 16-bit ones, which engines round in
other places: onnxruntime after each operator, OpenVINO in constants that it folds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bridge.check.compare import Difference
from bridge.check.engines import Session
from bridge.check.loading import load
from bridge.check.outputs import Comparison, Results
from bridge.check.pair import Pair
from bridge.elements import BF16, F16, F32, Element
from bridge.neutral.graph import Graph, Model, Value, size_of_constants
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import ContainerType, TensorType, Type

_HALVES = frozenset({F16, BF16})
_DTYPES = frozenset(element.dtype for element in _HALVES)

_LARGEST = 1 << 28
"""Bytes of the constants of a model that is computed once more."""


class Singles:
    """Both models in 32-bit floats. Their files are written when they are first run."""

    def __init__(self, pair: Pair, comparison: Comparison, version: Path) -> None:
        self._pair, self._comparison, self._version = pair, comparison, version

    def compared(self, feed: Results, actual: Results) -> list[tuple[str, Difference]] | None:
        """How the outputs for an input compare. None where neither model has 16-bit floats, where
        one is large, and where the version gave no finite number `actual` but gives one here."""
        if self._sessions is None:
            return None
        original, version = self._sessions
        wide = {name: _single(value) for name, value in feed.items()}
        given = self._comparison.renamed(wide, version)
        expected, found = original.run(wide), version.run(given)
        if any(_overflows(value, found.get(name)) for name, value in actual.items()):
            return None
        return self._comparison.judged(original, version, wide, expected, found)

    @cached_property
    def _sessions(self) -> tuple[Session, Session] | None:
        pair = self._pair
        one, other = pair.load(pair.source), pair.load(self._version)
        changed = widen(one) | widen(other)
        if not changed or max(map(size_of_constants, (one.graph, other.graph))) > _LARGEST:
            return None
        original = pair.rewritten(pair.source, one, "singles")
        return load(original)[0], load(pair.rewritten(self._version, other, "singles-too"))[0]


def widen(model: Model) -> bool:
    """Puts 32-bit floats in the place of all 16-bit ones, in place. Whether there were any."""
    changed = False
    for node in model.graph.walk():
        for name, given in node.attributes.items():
            node.attributes[name] = _wide(given)
            changed |= node.attributes[name] is not given
    for value in _values(model.graph):
        value.type, given = _wide_type(value.type), value.type
        value.declared = _wide_type(value.declared)
        changed |= value.type != given
    model.defaults = {value: _wide(default) for value, default in model.defaults.items()}
    return changed


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.walk():
        yield from node.outputs
        for body in node.bodies:
            yield from body.graph.inputs


def _wide(given: Any) -> Any:
    """What an attribute holds: an element type or a tensor in 32-bit floats, or as it is."""
    if isinstance(given, Element) and given in _HALVES:
        return F32
    if isinstance(given, Tensor) and given.element in _HALVES:
        return Tensor.of(given.array().astype(np.float32))
    return given


def _wide_type(type: Type) -> Type:
    if isinstance(type, ContainerType):
        return type.of(_wide_type(type.item))
    if isinstance(type, TensorType) and type.element in _HALVES:
        return TensorType(F32, type.shape)
    return type


def _single(value: Any) -> Any:
    """A tensor of 16-bit floats, or those of a sequence, in 32-bit ones; all else as it is."""
    if isinstance(value, list):
        return [_single(item) for item in value]
    is_half = isinstance(value, np.ndarray) and value.dtype in _DTYPES
    return value.astype(np.float32) if is_half else value


def _overflows(value: Any, exact: Any) -> bool:
    """Whether 16-bit floats are not finite where the exact ones are, rounded alike."""
    if not isinstance(value, np.ndarray) or value.dtype not in _DTYPES or exact is None:
        return False
    with np.errstate(over="ignore"):
        rounded = exact.astype(value.dtype)
    lost = np.isfinite(_single(rounded)) & ~np.isfinite(_single(value))
    return bool(value.shape == exact.shape and lost.any())
