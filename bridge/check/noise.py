"""A model's own noise: what it gives itself if each float is off by two units in the last place.

This is Monte Carlo arithmetic (Parker, 1997). Behind each float that depends on the inputs stands a
Mul by a random number near 1, in bodies too. Ties of decisions, sums that cancel and chains of
roundings then show themselves in what the model gives in several runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import ml_dtypes
import numpy as np

from bridge.check.compare import agreeing, compare, tolerance
from bridge.check.engines import Session
from bridge.check.outputs import Comparison, Results
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.ports import Carried, outer_input
from bridge.neutral.types import TensorType
from bridge.vocabulary import has_trait, operator
from bridge.vocabulary.elements import BF16, F16, F32, F64, Element

_FLOATS = frozenset({F16, BF16, F32, F64})
_HALVES = frozenset({F16, BF16})

_LOT = 8  # runs, after which what lies outside is counted
_LOTS = 8
_STEPS = 2.0  # units in the last place that a float is off by, at most
_FACTOR = 2.0  # how many times as wide as seen the noise may be

_EXACT = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "If"})
_OF_SHAPES = frozenset({"Shape", "Size", "ir::ShapeOf"})


def make_noisy(model: Model, computed_in: Element | None = None, constants: bool = False) -> None:
    """Puts noise behind each float of a model that depends on data, in place.

    An engine may compute 16-bit floats in the wider type `computed_in`, or all floats in that type
    of 16 bits. With `constants` these have noise too. A TopK of IR that may take any of equal
    elements takes the first, as ONNX's does."""
    graph = model.graph
    entries = graph.inputs
    graph.inputs = [Value(v.type, v.names) if _is_float(v) else v for v in entries]
    noisy = _Noisy(count(1), computed_in, constants)
    noisy.make(graph, set(entries))
    nodes: list[Node] = []
    for exact, value in zip(graph.inputs, entries, strict=True):
        if exact is not value:
            value.names = []
            noisy.add(Builder(nodes), exact, value)
    graph.prepend(nodes)


@dataclass
class _Noisy:
    seeds: Iterator[int]
    computed_in: Element | None
    constants: bool

    def make(self, graph: Graph, data: set[Value]) -> None:
        """Puts noise into a graph in which these inputs depend on data."""
        nodes: list[Node] = []
        known: dict[Value, Value] = {}
        for node in graph.nodes:
            if self.constants and not node.bodies and data.intersection(node.inputs):
                self._add_to_constants(Builder(nodes), node, known)
            nodes.append(node)
            for body in node.bodies:
                inner = ((value, outer_input(port), port) for value, port in body.entries())
                self.make(
                    body.graph,
                    {
                        value
                        for value, place, port in inner
                        if isinstance(port, Carried)
                        or (place is not None and node.inputs[place] in data)
                    },
                )
            if node.op == "ir::TopK":
                node.attributes["stable"] = True
            if node.op in _OF_SHAPES or not (node.bodies or data.intersection(node.inputs)):
                continue
            data |= {*node.outputs}
            if node.op in _EXACT or has_trait(node.op, "elements_of_first"):
                continue
            for place, value in enumerate(node.outputs):
                if _is_float(value):
                    exact = node.outputs[place] = Value(value.type)
                    exact.producer = node
                    self.add(Builder(nodes), exact, value)
        graph.nodes = nodes

    def _add_to_constants(self, b: Builder, node: Node, known: dict[Value, Value]) -> None:
        """Gives a node constants with noise, but for those that decide sizes."""
        row = operator(node.op)
        sizes = (*(row.shaped_by if row else ()), *((1, 2, 3) if node.op == "Resize" else ()))
        for place, value in enumerate(node.inputs):
            if value is None or value.constant is None or place in sizes or not _is_float(value):
                continue
            if value not in known:
                known[value] = Value(value.type)
                self.add(b, value, known[value])
            node.inputs[place] = known[value]

    def add(self, b: Builder, exact: Value, value: Value) -> None:
        """Makes `value` of the exact one."""
        element = exact.element
        assert element is not None
        is_half = element in _HALVES
        narrow = self.computed_in if self.computed_in in _HALVES else None
        rounded = (self.computed_in if is_half else narrow) or element
        step = _STEPS * float(ml_dtypes.finfo(rounded.dtype).eps)  # type: ignore[no-untyped-call]
        wide = b.cast(exact, F32) if is_half else exact
        seed = float(next(self.seeds))
        # OpenVINO 2026.4 draws 0 for a scalar.
        like = b.op("Reshape", wide, [1]) if exact.shape == () else wide
        factor = b.op(
            "RandomUniformLike", like, low=1 - step, high=1 + step, seed=seed, dtype=wide.element
        )
        noisy = b.op("Mul", wide, factor)
        if exact.shape == ():
            noisy = b.op("Reshape", noisy, np.array([], np.int64))
        if narrow is not None and not is_half:
            noisy = b.cast(b.cast(noisy, narrow), element)
        b.node("Cast", [noisy], [value], {"to": element}) if is_half else b.node(
            "Identity", [noisy], [value]
        )


def _is_float(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.element in _FLOATS


class Noise:
    """What a noisy model gives for one input, in as many runs as are worth it."""

    def __init__(
        self, session: Session, original: Session, comparison: Comparison, feed: Results
    ) -> None:
        self._session, self._original, self._comparison = session, original, comparison
        self._feed = feed
        self._runs: list[Results] = []

    def outside(self, results: Results, others: Sequence[Session] = ()) -> int:
        """How many elements lie outside of the noise. There are more runs as long as each lot of
        them takes some in; the third lot are runs of `others`. Raises EngineError."""
        before, left = 0, self._count(results) if self._runs else 1
        lots = 0
        while left and (lots < 2 + bool(others) or left < before) and lots < _LOTS:
            for session in others if lots == 2 and others else [self._session] * _LOT:
                found = session.run(self._comparison.renamed(self._feed, session))
                self._runs.append(self._comparison.aligned(self._original, session, found) or {})
            before, left, lots = left, self._count(results), lots + 1
        return left

    def _count(self, results: Results) -> int:
        return sum(
            outside(value, [run[name] for run in self._runs if name in run], *self._allowed(name))
            for name, value in results.items()
        )

    def _allowed(self, name: str) -> tuple[float, float]:
        return self._comparison.allowed(name)


def outside(value: Any, samples: Sequence[Any], rtol: float, atol: float) -> int:
    """How many elements of a value are none that the samples allow. Floats and integers of 8 bits
    may lie between them, and somewhat beyond; all else is what one of the samples has."""
    if isinstance(value, list):
        lists = [one for one in samples if isinstance(one, list) and len(one) == len(value)]
        if not lists:
            return 1
        each = zip(value, *lists, strict=True)
        return sum(outside(one, others, rtol, atol) for one, *others in each)
    if not isinstance(value, np.ndarray):
        return not any(compare(one, value, rtol, atol).ok for one in samples)
    alike = [one for one in samples if isinstance(one, np.ndarray) and one.shape == value.shape]
    alike = [one for one in alike if one.dtype == value.dtype]
    if not alike:
        return max(value.size, 1)
    if value.dtype.kind in "OSUbc":
        return int((~np.any([one == value for one in alike], axis=0)).sum())
    wide = value.astype(np.float64)
    seen = np.stack([one.astype(np.float64) for one in alike])
    rtol = tolerance(value, rtol)
    with np.errstate(all="ignore"):
        good = agreeing(seen, wide, rtol, atol).any(axis=0)
        if value.dtype.kind not in "iu" or value.dtype.itemsize == 1:
            finite = np.isfinite(seen)
            low = np.where(finite, seen, np.inf).min(axis=0)
            high = np.where(finite, seen, -np.inf).max(axis=0)
            reach = _FACTOR * (high - low) / 2 + atol + rtol * np.abs(high + low) / 2
            good |= np.abs(wide - (high + low) / 2) <= reach
    return int((~good).sum())
