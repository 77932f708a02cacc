"""A model's own noise: what it gives itself if each float is off by two units in the last place.

This is Monte Carlo arithmetic (Parker, 1997). Behind each float that depends on the inputs stands a
Mul by random numbers near 1, in bodies too: by one for each element, and by one for the whole
tensor, since engines round alike where numbers are alike. Ties of decisions, sums that cancel and
chains of roundings then show themselves in what the model gives in several runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import ml_dtypes
import numpy as np

from bridge.check.compare import agreeing, are_alike, compare, tolerance
from bridge.check.engines import Session
from bridge.check.in_parts import WITH_BOTH, put_in_parts
from bridge.check.outputs import Comparison, Results
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, outer_input
from bridge.neutral.types import TensorType
from bridge.vocabulary import has_trait, operator
from bridge.vocabulary.elements import BF16, F16, F32, F64, Element

_FLOATS = frozenset({F16, BF16, F32, F64})
_HALVES = frozenset({F16, BF16})

_LOT = 8  # runs, after which what lies outside is counted
_LOTS = 8
_STEPS = 2.0  # units in the last place that a float is off by, at most; half of it by its own
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

_WHOLE = frozenset({"Add", "Sub", "Mul", "Neg", "Abs", "Min", "Max", "Where", "Concat", "OneHot"})
"""Operators that make integers of integers, beside those that keep elements."""

_MANY = 1 << 10  # elements of a constant that is read to see whether they are integers


def make_noisy(model: Model, narrow: Element | None = None, constants: bool = False) -> None:
    """Puts noise behind each float of a model that depends on data, in place.

    An engine may compute all floats in the type `narrow` of 16 bits. With `constants` these have
    noise too. Where numbers are rounded to integers, the noise is relative to the largest number,
    as the error of a sum may be. Floats that are made of integers alone have no noise: each engine
    computes them exactly. Operators that round inside are written in several. A TopK of IR that may
    take any of equal elements takes the first, as ONNX's does."""
    graph = model.graph
    put_in_parts(model, WITH_BOTH)
    entries = graph.inputs
    graph.inputs = [Value(v.type, v.names) if _is_float(v) else v for v in entries]
    noisy = _Noisy(np.random.default_rng(0), narrow, constants)
    noisy.make(graph, set(entries))
    nodes: list[Node] = []
    for exact, value in zip(graph.inputs, entries, strict=True):
        if exact is not value:
            value.names = []
            noisy.add(Builder(nodes), exact, value)
    graph.prepend(nodes)


@dataclass
class _Noisy:
    random: np.random.Generator
    narrow: Element | None
    constants: bool
    whole: set[Value] = field(default_factory=set)

    def make(self, graph: Graph, data: set[Value]) -> None:
        """Puts noise into a graph in which these inputs depend on data."""
        nodes: list[Node] = []
        b = Builder(nodes)
        known: dict[Value, Value] = {}
        for node in graph.nodes:
            taken = data.intersection(node.inputs)
            is_whole = self._is_whole(node)
            if taken and not (is_whole or node.bodies):
                self._add_to_inputs(b, node, known)
            nodes.append(node)
            for body in node.bodies:
                self._enter(node, body, data)
            if node.op == "ir::TopK":
                node.attributes["stable"] = True
            if node.op in _OF_SHAPES or not (node.bodies or taken):
                continue
            data |= {*node.outputs}
            if is_whole or node.op in _EXACT or has_trait(node.op, "elements_of_first"):
                continue
            for place, value in enumerate(node.outputs):
                if _is_float(value):
                    exact = node.outputs[place] = Value(value.type)
                    exact.producer = node
                    self.add(b, exact, value, node.op in _OF_LEVELS)
        graph.nodes = nodes

    def _enter(self, node: Node, body: Body, data: set[Value]) -> None:
        """Puts noise into a body. What is carried depends on data."""
        inside: set[Value] = set()
        for value, port in body.entries():
            place, is_carried = outer_input(port), isinstance(port, Carried)
            given = None if place is None else node.inputs[place]
            if is_carried or given in data:
                inside.add(value)
            if not is_carried and given in self.whole:
                self.whole.add(value)
        self.make(body.graph, inside)

    def _is_whole(self, node: Node) -> bool:
        """Whether the floats that a node makes are integers, because it takes integers alone."""
        first = node.input(0)
        if node.op == "Cast" and first is not None and first.element is not None:
            is_whole = not first.element.is_float or first in self.whole
        else:
            traits = ("elements_of_first", "exact_on_integers")
            keeps = node.op in _WHOLE or any(has_trait(node.op, one) for one in traits)
            is_whole = keeps and all(
                value in self.whole or _is_constant_of_integers(value)
                for value in node.inputs
                if value is not None and _is_float(value)
            )
        self.whole.update(node.outputs if is_whole else ())
        return is_whole

    def _add_to_inputs(self, b: Builder, node: Node, known: dict[Value, Value]) -> None:
        """Gives a node numbers with noise to round, and weights with noise. Engines may want
        constants of one element as such, and those that decide sizes."""
        row = operator(node.op)
        sizes = (*(row.shaped_by if row else ()), *((1, 2, 3) if node.op == "Resize" else ()))
        for place, value in enumerate(node.inputs):
            if value is None or not _is_float(value):
                continue
            if value.constant is None:
                if place == 0 and node.op in _ROUNDING:
                    node.inputs[0] = noisy = Value(value.type)
                    self.add(b, value, noisy, of_largest=True)
            elif self.constants and place not in sizes:
                if value not in known and value.constant.size > 1:
                    known[value] = Value(value.type)
                    self.add(b, value, known[value])
                node.inputs[place] = known.get(value, value)

    def add(self, b: Builder, exact: Value, value: Value, of_largest: bool = False) -> None:
        """Makes `value` of the exact one. Each element is off by a part of all, and by one
        for its place on the first axes and on the last. One for each element would take long."""
        element = exact.element
        assert element is not None
        wide = b.cast(exact, F32) if element in _HALVES else exact
        rounded = self.narrow or element
        unit = float(ml_dtypes.finfo(rounded.dtype).eps)  # type: ignore[no-untyped-call]
        # OpenVINO 2026.4 draws 0 for a scalar.
        like = b.op("Reshape", wide, [1]) if exact.shape == () else wide

        def drawn(op: str, *shape: Value, steps: float, **attributes: Any) -> Value:
            limits = {"low": -steps * unit, "high": steps * unit, "dtype": wide.element}
            # What onnxruntime draws for seeds in a row is alike.
            seed = float(self.random.integers(1, 1 << 24))
            return b.op(op, *shape, seed=seed, **limits, **attributes)

        noise = drawn("RandomUniform", steps=_STEPS / 2, shape=(1,))
        for part in _parts(b, like):
            each = drawn("RandomUniformLike", part, steps=_STEPS / 4)
            noise = b.op("Add", noise, each)
        size = like
        if of_largest:
            flat = b.op("Reshape", b.op("Abs", like), [-1])
            size = b.op("ReduceMax", flat, [0], keepdims=True)
        noisy = b.op("Add", like, b.op("Mul", noise, size))
        if exact.shape == ():
            noisy = b.op("Reshape", noisy, np.array([], np.int64))
        noisy = b.cast(noisy, self.narrow) if self.narrow is not None else noisy
        maker = b.cast(noisy, element).producer
        assert maker is not None
        maker.outputs, value.producer = [value], maker


def _parts(b: Builder, value: Value) -> list[Value]:
    """Two tensors that are broadcast to the shape of a value: one has its first axes, the other its
    last ones. The value itself where it has less than two axes, or an unknown rank."""
    rank = value.rank or 0
    if rank < 2:
        return [value]
    middle = (rank + 1) // 2
    axes = [*range(middle)], [*range(middle, rank)]
    first, last = (
        b.op("Slice", value, [0] * len(some), [1] * len(some), some, [1] * len(some))
        for some in axes
    )
    return [last, first]


def _is_constant_of_integers(value: Value) -> bool:
    if value.constant is None or value.constant.size > _MANY:
        return False
    numbers = value.constant.array().astype(np.float64)
    return bool((numbers == np.rint(numbers)).all())


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
        before = left = self._left(results)
        lots = 0
        while left and (lots < 2 + bool(others) or left < before) and lots < _LOTS:
            for session in others if lots == 2 and others else [self._session] * _LOT:
                found = session.run(self._comparison.renamed(self._feed, session))
                self._runs.append(self._comparison.aligned(self._original, session, found) or {})
            before, left, lots = left, self._left(results), lots + 1
        return not self._count(_is_apart, results)

    def _left(self, results: Results) -> int:
        """How many elements are outside, 0 if no more than of a value that is drawn so, too."""
        return self._count(outside, results) if self._count(_is_far, results) else 0

    def _count(self, how: Callable[..., int], results: Results) -> int:
        allowed = self._comparison.allowed
        return sum(
            how(value, [run[name] for run in self._runs if name in run], *allowed(name))
            for name, value in results.items()
        )


def _is_apart(value: Any, samples: Sequence[Any], rtol: float, atol: float) -> bool:
    """Whether a value stands out of the noise more than the samples do. It is far, even if as many
    of its elements may be outside as of the samples."""
    is_far = _is_far(value, samples, rtol, atol)
    if not is_far or not _are_comparable(value, samples):
        return is_far
    others = ([other for other in samples if other is not one] for one in samples)
    most = max(map(outside, samples, others, repeat(rtol), repeat(atol)))
    return _is_far(value, samples, rtol, atol, _FACTOR * most)


def _is_far(
    value: Any, samples: Sequence[Any], rtol: float, atol: float, most: float = 0.0
) -> bool:
    """Whether more elements of a value are outside than of a value that is drawn as the samples
    are, and than `most`; or one is farther outside than samples are apart anywhere, or the value is
    farther from their mean as a whole."""
    count = outside(value, samples, rtol, atol)
    if not _are_comparable(value, samples):
        return count > 0
    if not value.size:
        return False
    wide, *seen = (one.astype(np.float64) for one in (value, *samples))
    if count > max(most, _SHARE * value.size):
        return True
    with np.errstate(all="ignore"):
        low, high = np.min(seen, axis=0), np.max(seen, axis=0)
        beyond = np.maximum(low - wide, wide - high) > (high - low).max() * (1 + rtol) + atol
        if count and beyond.any():
            return True
        mean = np.mean(seen, axis=0)
        known = np.isfinite(mean) & np.isfinite(wide)
        far, *own, allowed = (
            float(np.sqrt(np.mean(np.square(some[known])))) if known.any() else 0.0
            for some in (wide - mean, *(one - mean for one in seen), atol + rtol * np.abs(mean))
        )
    # A sample is farther from the mean of the others than from that of all.
    return far > _FARTHER * max(own) * len(seen) / (len(seen) - 1) + allowed


def _are_comparable(value: Any, samples: Sequence[Any]) -> bool:
    return bool(samples) and are_alike(value, *samples) and _is_between(value)


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
