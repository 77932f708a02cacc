"""A model's own noise: what it gives itself if each float is off by two units in the last place.

This is Monte Carlo arithmetic (Parker, 1997). Behind each float that depends on the inputs stands a
Mul by random numbers near 1, in bodies too: by one for each element, and by one for the whole
tensor, since engines round alike where numbers are alike. Ties of decisions, sums that cancel and
chains of roundings then show themselves in what the model gives in several runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any

import ml_dtypes
import numpy as np

from bridge.check.compare import agreeing, are_alike, compare, tolerance
from bridge.check.engines import Session
from bridge.check.in_parts import WITH_BOTH, put_in_parts
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
_STEPS = 2.0  # units in the last place that a float is off by, at most; a third by its own
_FACTOR = 2.0  # how many times as wide as seen the noise may be
_SHARE = 2 / (_LOT * _LOTS + 1)
"""The share of elements that is outside, on average, if a value is drawn as these runs are."""

_FARTHER = 1.5  # how many times as far from the mean as the samples a value may be, as a whole

_EXACT = frozenset({"Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "If"})
_OF_SHAPES = frozenset({"Shape", "Size", "ir::ShapeOf"})
_ROUNDING = frozenset(
    {"Round", "Floor", "Ceil", "QuantizeLinear", "DynamicQuantizeLinear", "FakeQuantize"}
)
_OF_LEVELS = frozenset({"DequantizeLinear", "FakeQuantize"})
"""Operators that engines may compute as steps from the lowest number."""


def make_noisy(model: Model, narrow: Element | None = None, constants: bool = False) -> None:
    """Puts noise behind each float of a model that depends on data, in place.

    An engine may compute all floats in the type `narrow` of 16 bits. With `constants` these have
    noise too. Where numbers are rounded to integers, the noise is relative to the largest number,
    as the error of a sum may be. Operators that round inside are written in several. A TopK of IR
    that may take any of equal elements takes the first, as ONNX's does."""
    graph = model.graph
    put_in_parts(model, WITH_BOTH)
    entries = graph.inputs
    graph.inputs = [Value(v.type, v.names) if _is_float(v) else v for v in entries]
    noisy = _Noisy(count(1), narrow, constants)
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
    narrow: Element | None
    constants: bool

    def make(self, graph: Graph, data: set[Value]) -> None:
        """Puts noise into a graph in which these inputs depend on data."""
        nodes: list[Node] = []
        b = Builder(nodes)
        known: dict[Value, Value] = {}
        for node in graph.nodes:
            taken = data.intersection(node.inputs)
            if self.constants and not node.bodies and taken:
                self._add_to_constants(b, node, known)
            given = node.input(0)
            if node.op in _ROUNDING and given is not None and given in taken and _is_float(given):
                node.inputs[0] = noisy = Value(given.type)
                self.add(b, given, noisy, of_largest=True)
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
            if node.op in _OF_SHAPES or not (node.bodies or taken):
                continue
            data |= {*node.outputs}
            if node.op in _EXACT or has_trait(node.op, "elements_of_first"):
                continue
            for place, value in enumerate(node.outputs):
                if _is_float(value):
                    exact = node.outputs[place] = Value(value.type)
                    exact.producer = node
                    self.add(b, exact, value, node.op in _OF_LEVELS)
        graph.nodes = nodes

    def _add_to_constants(self, b: Builder, node: Node, known: dict[Value, Value]) -> None:
        """Gives a node weights with noise. Engines may want constants of one element as such, and
        those that decide sizes."""
        row = operator(node.op)
        sizes = (*(row.shaped_by if row else ()), *((1, 2, 3) if node.op == "Resize" else ()))
        for place, value in enumerate(node.inputs):
            if value is None or value.constant is None or place in sizes or not _is_float(value):
                continue
            if value not in known and value.constant.size > 1:
                known[value] = Value(value.type)
                self.add(b, value, known[value])
            node.inputs[place] = known.get(value, value)

    def add(self, b: Builder, exact: Value, value: Value, of_largest: bool = False) -> None:
        """Makes `value` of the exact one. Each element is off by a part of its own and by a part
        of all."""
        element = exact.element
        assert element is not None
        wide = b.cast(exact, F32) if element in _HALVES else exact
        rounded = self.narrow or element
        unit = float(ml_dtypes.finfo(rounded.dtype).eps)  # type: ignore[no-untyped-call]
        # OpenVINO 2026.4 draws 0 for a scalar.
        like = b.op("Reshape", wide, [1]) if exact.shape == () else wide

        def drawn(op: str, *shape: Value, steps: float, **attributes: Any) -> Value:
            limits = {"low": -steps * unit, "high": steps * unit, "dtype": wide.element}
            return b.op(op, *shape, seed=float(next(self.seeds)), **limits, **attributes)

        each = drawn("RandomUniformLike", like, steps=_STEPS / 3)
        noise = b.op("Add", each, drawn("RandomUniform", steps=2 * _STEPS / 3, shape=(1,)))
        if of_largest:
            flat = b.op("Reshape", b.op("Abs", like), [-1])
            largest = b.op("ReduceMax", flat, [0], keepdims=True)
            noisy = b.op("Add", like, b.op("Mul", noise, largest))
        else:
            noisy = b.op("Mul", like, b.op("Add", noise, 1.0))
        if exact.shape == ():
            noisy = b.op("Reshape", noisy, np.array([], np.int64))
        noisy = b.cast(noisy, self.narrow) if self.narrow is not None else noisy
        maker = b.cast(noisy, element).producer
        assert maker is not None
        maker.outputs, value.producer = [value], maker


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

    def explains(self, results: Results, others: Sequence[Session] = ()) -> bool:
        """Whether the results are within the noise. There are more runs as long as each lot of
        them takes some elements in; the third lot are runs of `others`. Raises EngineError."""
        before, left = np.inf, self._count(outside, results) if self._runs else np.inf
        lots = 0
        while left and (lots < 2 + bool(others) or left < before) and lots < _LOTS:
            for session in others if lots == 2 and others else [self._session] * _LOT:
                found = session.run(self._comparison.renamed(self._feed, session))
                self._runs.append(self._comparison.aligned(self._original, session, found) or {})
            before, left, lots = left, self._count(outside, results), lots + 1
        return not self._count(_is_apart, results)

    def _count(self, how: Callable[..., int], results: Results) -> int:
        allowed = self._comparison.allowed
        return sum(
            how(value, [run[name] for run in self._runs if name in run], *allowed(name))
            for name, value in results.items()
        )


def _is_apart(value: Any, samples: Sequence[Any], rtol: float, atol: float) -> bool:
    """Whether a value stands out of the noise more than the samples do. Many of its elements are
    outside, more than of any sample, or one is farther outside than samples are apart anywhere, or
    it is farther from their mean as a whole."""
    count = outside(value, samples, rtol, atol)
    if not samples or not are_alike(value, *samples) or not _is_between(value):
        return count > 0
    wide, *seen = (one.astype(np.float64) for one in (value, *samples))
    if count:
        others = [[other for other in samples if other is not one] for one in samples]
        most = max(map(outside, samples, others, repeat(rtol), repeat(atol)))
        low, high = np.min(seen, axis=0), np.max(seen, axis=0)
        with np.errstate(all="ignore"):
            beyond = np.maximum(low - wide, wide - high) > (high - low).max() * (1 + rtol) + atol
        if count > max(_FACTOR * most, _SHARE * value.size) or beyond.any():
            return True
    with np.errstate(all="ignore"):
        mean = np.mean(seen, axis=0)
        known = np.isfinite(mean) & np.isfinite(wide)
        far, *own, allowed = (
            float(np.sqrt(np.mean(np.square(some[known])))) if known.any() else 0.0
            for some in (wide - mean, *(one - mean for one in seen), atol + rtol * np.abs(mean))
        )
    # A sample is farther from the mean of the others than from that of all.
    return far > _FARTHER * max(own) * len(seen) / (len(seen) - 1) + allowed


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
    good = agreeing(seen, wide, rtol, atol).any(axis=0)
    if _is_between(value):
        finite = np.isfinite(seen)
        low = np.where(finite, seen, np.inf).min(axis=0)
        high = np.where(finite, seen, -np.inf).max(axis=0)
        good |= _distance(wide, low, high, rtol, atol) <= 1
    return int((~good).sum())


def _is_between(value: np.ndarray) -> bool:
    """Whether the elements may be between samples."""
    kind = value.dtype.kind
    return kind not in "iuOSUbc" or (kind in "iu" and value.dtype.itemsize == 1)


def _distance(
    value: np.ndarray, low: np.ndarray, high: np.ndarray, rtol: float, atol: float
) -> np.ndarray:
    """How far each element is from the middle of two limits; up to 1 is within the noise."""
    with np.errstate(all="ignore"):
        middle = (low + high) / 2
        far = np.abs(value - middle) / (_FACTOR * (high - low) / 2 + atol + rtol * np.abs(middle))
    return np.asarray(far)
