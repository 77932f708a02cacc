"""Makes models in which each float is off by two units in the last place, at random.

This is Monte Carlo arithmetic (Parker, 1997). To each float that depends on the inputs a random
part of it is added, in bodies too: one of the whole tensor, since engines round alike where numbers
are alike, and one of the element's place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from bridge.check.surgery.quantised import WITH_BOTH, put_in_parts
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, outer_input
from bridge.neutral.types import Shape, TensorType
from bridge.vocabulary import has_trait, operator
from bridge.vocabulary.elements import BF16, F16, F32, F64, Element

_FLOATS = frozenset({F16, BF16, F32, F64})
_HALVES = frozenset({F16, BF16})

_STEPS = 2.0  # units in the last place that a float is off by, at most; half of it by its own
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
            if is_whole or node.op == "If" or has_trait(node.op, "elements_of_first"):
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
        """Makes `value` of the exact one. Each element is off by a part of all, and by one for its
        place on the first axes and on the last. One for each element would take long."""
        element = exact.element
        assert element is not None
        wide = b.cast(exact, F32) if element in _HALVES else exact
        rounded = self.narrow or element
        unit = float(ml_dtypes.finfo(rounded.dtype).eps)  # type: ignore[no-untyped-call]
        # OpenVINO 2026.4 draws 0 for a scalar.
        like = b.op("Reshape", wide, [1]) if exact.shape == () else wide
        noise = self._drawn(b, like, (1,), _STEPS / 2 * unit)
        for shape in _parts(like.shape):
            noise = b.op("Add", noise, self._drawn(b, like, shape, _STEPS / 4 * unit))
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

    def _drawn(self, b: Builder, like: Value, shape: Shape, limit: float) -> Value:
        """Random numbers of this shape, which has sizes of `like`, or 1 in their place."""
        # What onnxruntime draws for seeds in a row is alike.
        seed = float(self.random.integers(1, 1 << 24))
        given: dict[str, Any] = {"low": -limit, "high": limit, "dtype": like.element, "seed": seed}
        if shape is not None and all(isinstance(size, int) for size in shape):
            return b.op("RandomUniform", shape=shape, **given)
        if shape is not None and shape != like.shape:
            both = zip(shape, like.shape or (), strict=True)
            axes = [axis for axis, (size, whole) in enumerate(both) if size != whole]
            none, one = [0] * len(axes), [1] * len(axes)
            like = b.op("Slice", like, none, one, axes, one)
        return b.op("RandomUniformLike", like, **given)


def _parts(shape: Shape) -> list[Shape]:
    """Two shapes that are broadcast to this one: one has its first sizes, the other its last ones.
    The shape itself if it has less than two."""
    if shape is None or len(shape) < 2:
        return [shape]
    first, last = shape[: (len(shape) + 1) // 2], shape[(len(shape) + 1) // 2 :]
    return [(*first, *(1 for _ in last)), (*(1 for _ in first), *last)]


def _is_constant_of_integers(value: Value) -> bool:
    if value.constant is None or value.constant.size > _MANY:
        return False
    numbers = value.constant.array().astype(np.float64)
    return bool((numbers == np.rint(numbers)).all())


def _is_float(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.element in _FLOATS
