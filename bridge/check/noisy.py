"""Makes models in which each computed float is off by up to two units in the last place.

This is Monte Carlo arithmetic (Parker, 1997). A value is *exact* if every engine has it bit for
bit: inputs, constants, their elements moved or selected, and floats that are made of integers
alone, such as counters. Exact values have no noise, so that a decision between them has none
either. All others do. An operator that sums products gets noise on its exact inputs too: its own
sums are off by more than a unit of a result that cancels. Floats of 16 bits are summed in wider
ones: they are off by the rounding of the result, by which engines that keep wide floats differ
from those that do not, and by that of constants, which may be sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from bridge.check.surgery.quantised import WITH_BOTH, put_in_parts
from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Condition, Iteration, outer_input
from bridge.neutral.types import Shape, TensorType
from bridge.vocabulary import has_trait, operator
from bridge.vocabulary.elements import BF16, F16, F32, F64, I8, I16, U8, U16, Element

_FLOATS = frozenset({F16, BF16, F32, F64})

_OF_SHAPES = frozenset({"Shape", "Size", "ir::ShapeOf"})

_LEVELS = frozenset({"QuantizeLinear", "DynamicQuantizeLinear", "FakeQuantize"})
"""Operators that divide before they round, which engines do differently."""

_TO_WHOLE = frozenset({"Round", "Floor", "Ceil"})
_ROUNDING = _LEVELS | _TO_WHOLE

_OF_LEVELS = frozenset({"DequantizeLinear", "FakeQuantize"})
"""Operators that engines may compute as steps from the lowest number."""

_FROM_BOUNDS = frozenset({"Sigmoid", "HardSigmoid"})
"""Operators that engines may compute as a difference from 1, by units of which they are off."""

_WHOLE = frozenset({"Add", "Sub", "Mul", "Neg", "Abs", "Min", "Max", "Where", "Concat", "OneHot"})
"""Operators that make integers of integers, beside those that keep elements."""

_SELECTING = frozenset({"Abs", "Clip", "Concat", "Max", "Min", "Neg", "Relu", "Trilu", "Where"})
"""Operators that round no number, beside those that keep elements."""

_CHOOSING = frozenset(
    {"ArgMax", "ArgMin", "TopK", "ir::TopK", "Hardmax", "NonMaxSuppression", "Unique"}
    | {f"ai.onnx.ml::TreeEnsemble{kind}" for kind in ("", "Classifier", "Regressor")}
)
"""Operators that compare numbers, and sum none of them."""

_TIE = 4.0  # times as much noise where a number is rounded: engines sum what is before it unlike
_NEARLY = 0.1  # of a step that OpenVINO's CPU plugin moves the bounds of a FakeQuantize, at most
_ENDS = (np.float32(-3e38), np.float32(3e38))
_MANY = 1 << 10  # elements of a constant that is read to see whether they are integers


def make_noisy(model: Model, of_constants: Element | None = None) -> None:
    """Puts noise behind each float of a model that depends on data and is not exact, in place.

    Constants that an operator sums have the noise of their own type. With `of_constants` all
    constants of floats have that type's, for a file that stores them so. Where numbers are rounded
    to integers, the noise is relative to the largest number, as the error of a sum may be.
    Operators that round inside are written in several. A TopK of IR that may take any of equal
    elements takes the first, as ONNX's does."""
    put_in_parts(model, WITH_BOTH)
    graph = model.graph
    _label_by_scores(graph)
    facts = _Exactness()
    facts.enter(graph, {*graph.inputs})
    facts.exact |= {*graph.inputs}
    facts.look(graph)
    _Noise(facts, np.random.default_rng(0), of_constants).make(graph)


def exact_values(graph: Graph) -> set[Value]:
    """The values of a model's graph that every engine has bit for bit."""
    facts = _Exactness()
    facts.enter(graph, {*graph.inputs})
    facts.exact |= {*graph.inputs}
    facts.look(graph)
    return facts.exact


def _label_by_scores(graph: Graph) -> None:
    """Lets the noise of scores decide between the classes of trees: sums of leaves are often
    equal."""
    nodes: list[Node] = []
    b = Builder(nodes)
    for node in graph.nodes:
        nodes.append(node)
        for body in node.bodies:
            _label_by_scores(body.graph)
        if node.op != "ai.onnx.ml::TreeEnsembleClassifier":
            continue
        names: Sequence[Any] = next((of for of in map(node.attributes.get, _CLASSES) if of), ())
        if len(names) < 2 or len(set(node.attributes["class_ids"])) < len(names):
            continue
        label = node.outputs[0]
        own = Value(label.type, [f"bridge.{label.name}"])
        node.outputs[0], own.producer = own, node
        labels = np.array([*names], object if isinstance(names[0], str) else np.int64)
        best = b.op("ArgMax", node.outputs[1], axis=1, keepdims=False)
        maker = b.op("Gather", b.constant(labels), best, 0).producer
        assert maker is not None
        maker.outputs, label.producer = [label], maker
    graph.nodes = nodes


_CLASSES = "classlabels_int64s", "classlabels_strings"


@dataclass
class _Exactness:
    """The values that depend on data, those that are exact, and floats that are integers."""

    data: set[Value] = field(default_factory=set)
    exact: set[Value] = field(default_factory=set)
    whole: set[Value] = field(default_factory=set)

    def enter(self, graph: Graph, data: set[Value]) -> None:
        """Marks what depends on data: what is computed of it, and all states of Loops."""
        self.data |= data
        for node in graph.nodes:
            taken = not self.data.isdisjoint(node.inputs)
            for body in node.bodies:
                inside = {
                    value
                    for value, port in body.entries()
                    if isinstance(port, Carried | Iteration)
                    or ((at := outer_input(port)) is not None and node.inputs[at] in self.data)
                }
                self.enter(body.graph, inside)
            if (taken or node.bodies) and node.op not in _OF_SHAPES:
                self.data |= {*node.outputs}

    def look(self, graph: Graph) -> None:
        """Marks what is exact. A state is, if its start is and each iteration keeps it so."""
        for node in graph.nodes:
            for body in node.bodies:
                self._look_into(node, body)
            if node.bodies or node.op == "Constant":
                self._leave(node)
                continue
            floats = [v for v in node.inputs if v is not None and _is_float(v)]
            keeps = has_trait(node.op, "elements_of_first") or has_trait(node.op, "elements_of_all")
            if node.op == "Cast":
                first = node.inputs[0]
                assert first is not None
                from_integers = first.element is not None and not first.element.is_float
                is_whole = from_integers or first in self.whole
                # An engine may leave out that numbers lose bits.
                keeps = not floats or _bits(node.outputs[0]) >= _bits(first)
            else:
                may = keeps or node.op in _WHOLE or has_trait(node.op, "exact_on_integers")
                keeps_whole = all(v in self.whole or _is_whole_constant(v) for v in floats)
                is_whole = node.op in _TO_WHOLE or (may and keeps_whole)
            if is_whole:
                self.whole |= {*node.outputs}
            if is_whole or (
                (keeps or node.op in _SELECTING or _scales_exactly(node))
                and all(v in self.exact or _is_constant(v) for v in floats)
            ):
                self.exact |= {*node.outputs}

    def _look_into(self, node: Node, body: Body) -> None:
        """Marks what is exact in a body. A state is supposed to be, until an iteration loses it."""
        carried = []
        for value, port in body.entries():
            at = outer_input(port)
            outer = None if at is None else node.inputs[at]
            for of, is_in in ((self.exact, _is_constant), (self.whole, _is_whole_constant)):
                if outer is not None and (outer in of or is_in(outer)):
                    of.add(value)
                else:
                    of.discard(value)
            if isinstance(port, Carried):
                carried.append((value, body.graph.outputs[port.output]))
        while True:
            inside = {value for one in body.graph.walk() for value in one.outputs}
            self.exact -= inside
            self.whole -= inside
            self.look(body.graph)
            lost = [
                (value, of)
                for value, after in carried
                for of, is_in in ((self.exact, _is_constant), (self.whole, _is_whole_constant))
                if value in of and after not in of and not is_in(after)
            ]
            if not lost:
                return
            for value, of in lost:
                of.discard(value)

    def _leave(self, node: Node) -> None:
        """Marks the outputs of a node with bodies that are exact in each of them."""
        for of, is_in in ((self.exact, _is_constant), (self.whole, _is_whole_constant)):
            inside: dict[int, bool] = {}
            for value, port in (exit for body in node.bodies for exit in body.exits()):
                if not isinstance(port, Condition) and port.output is not None:
                    known = value in of or is_in(value)
                    inside[port.output] = inside.get(port.output, True) and known
            of |= {node.outputs[place] for place, known in inside.items() if known}


@dataclass
class _Noise:
    facts: _Exactness
    random: np.random.Generator
    of_constants: Element | None

    def make(self, graph: Graph) -> None:
        """Puts noise into a graph."""
        nodes: list[Node] = []
        b = Builder(nodes)
        noisy: dict[Value, Value] = {}
        for node in graph.nodes:
            # Engines fold weights that are stored in few bits, and may do so in wider floats.
            depends = not self.facts.data.isdisjoint(node.outputs) or any(
                value.element in (F16, BF16) and _has_many(value) for value in node.outputs
            )
            depends = depends and node.op != "Constant"
            moved = _moved(node) if depends and node.op == "FakeQuantize" else None
            if moved is not None:
                node.inputs[0] = self._shifted(b, node.operand(0), moved[0])
            if depends and not node.bodies and self.facts.exact.isdisjoint(node.outputs):
                self._add_to_inputs(b, node, noisy)
            nodes.append(node)
            for body in node.bodies:
                self.make(body.graph)
            if node.op == "ir::TopK":
                node.attributes["stable"] = True
            is_stored = self._is_stored(node)
            if not is_stored and (not depends or node.op == "If" or _keeps_elements(node)):
                continue
            for place, value in enumerate(node.outputs):
                if _is_float(value) and (is_stored or value not in self.facts.exact):
                    exact = node.outputs[place] = Value(value.type)
                    exact.producer = node
                    unit = _epsilon(F16) if is_stored else 0.0
                    least = 1.0 if node.op in _FROM_BOUNDS else 0.0
                    lowest = _lowest(b, node)
                    if moved is not None:
                        exact = self._shifted(b, exact, moved[1])
                    self._add(b, exact, value, unit, node.op in _OF_LEVELS, 1.0, least, lowest)
        graph.nodes = nodes

    def _shifted(self, b: Builder, value: Value, most: np.ndarray) -> Value:
        """A value that is off by one share of `most`, up to 1, either way."""
        drawn = self._drawn(b, value, (1,), 1.0)
        return b.op("Add", value, b.op("Mul", drawn, b.constant(most)))

    def _is_stored(self, node: Node) -> bool:
        """Whether a node widens a constant that is stored in the type `of_constants`."""
        first = node.inputs[0] if node.op == "Cast" else None
        return first is not None and _is_constant(first) and first.element is self.of_constants

    def _add_to_inputs(self, b: Builder, node: Node, noisy: dict[Value, Value]) -> None:
        """Gives noise to numbers before they are rounded, and to exact inputs of sums. Engines may
        want constants that decide sizes."""
        row = operator(node.op)
        sizes = (*(row.shaped_by if row else ()), *((1, 2, 3) if node.op == "Resize" else ()))
        for place, value in enumerate(node.inputs):
            if value is None or not _is_float(value) or place in sizes:
                continue
            before = self._before_rounding(node, value) if place == 0 else None
            if before is not None:
                node.inputs[0] = rounded = Value(value.type)
                self._add(b, value, rounded, *before)
            elif self._is_summed(node, value):
                if value not in noisy:
                    noisy[value] = Value(value.type)
                    unit = self.of_constants if _is_constant(value) else None
                    # What is stored in 16 bits may be a sum of two that was rounded.
                    half = 0.5 if value.element in (F16, BF16) else 1.0
                    self._add(b, value, noisy[value], _epsilon(unit) if unit else 0.0, share=half)
                node.inputs[place] = noisy[value]

    def _before_rounding(self, node: Node, value: Value) -> tuple[float, bool] | None:
        """The unit of the noise of a number that a node rounds, or chooses from, and whether it is
        relative to the largest number. None if the node does neither."""
        element = node.outputs[0].element
        if node.op == "Cast" and element is not None and element.is_float and element.bits <= 8:
            return _epsilon(F16), False  # Engines go by way of f16, and so round twice.
        if node.op not in _ROUNDING | _CHOOSING or _is_constant(value):
            return None
        if value in self.facts.exact and (node.op not in _LEVELS or _halves_exactly(node)):
            return None
        return (_TIE * _epsilon(F32) if value.element is F32 else 0.0), True

    def _is_summed(self, node: Node, value: Value) -> bool:
        """Whether noise belongs to an exact input."""
        is_constant = _is_constant(value)
        if is_constant and self.of_constants:
            return True
        by_element = (has_trait(node.op, one) for one in ("broadcasts", "by_element"))
        rounds_none = _keeps_elements(node) or _halves_exactly(node)
        if rounds_none or node.op in _SELECTING | _CHOOSING or any(by_element):
            return False
        is_exact = value in self.facts.exact and value.element not in (F16, BF16)
        return _has_many(value) and (is_constant or is_exact)

    def _add(
        self,
        b: Builder,
        exact: Value,
        value: Value,
        unit: float = 0.0,
        of_largest: bool = False,
        share: float = 1.0,
        least: float = 0.0,
        lowest: Value | None = None,
    ) -> None:
        """Makes `value` of the exact one. Each element is off by up to two units, or by one of a
        type of 16 bits, or a `share` of that: half of it for its place on the first axes, half for
        that on the last. Noise for each element would take long. An element below `least` has the
        noise of that number; with `of_largest` all have that of the largest or `lowest` one."""
        element = exact.element
        assert element is not None
        unit = max(unit, _epsilon(element))
        most = share * (unit if unit >= _epsilon(F16) else 2 * unit)
        wide = b.cast(exact, F32) if element in (F16, BF16) else exact
        # OpenVINO 2026.4 draws 0 for a scalar.
        like = b.op("Reshape", wide, [1]) if exact.shape == () else wide
        parts = _parts(like.shape)
        noise = None
        for shape in parts:
            drawn = self._drawn(b, like, shape, most / len(parts))
            noise = drawn if noise is None else b.op("Add", noise, drawn)
        if of_largest:
            flat = [b.op("Reshape", one, [-1]) for one in (like, lowest) if one]
            size = b.op("ReduceMax", b.op("Abs", b.op("Concat", *flat, axis=0)), [0], keepdims=True)
        else:  # An infinity is an infinity with noise, too.
            size = b.op("Clip", like, *(b.cast(b.constant(end), like.element) for end in _ENDS))
            size = size if not least else b.op("Max", size, b.constant(least, like.element))
        result = b.op("Add", like, b.op("Mul", noise, size))
        if exact.shape == ():
            result = b.op("Reshape", result, np.array([], np.int64))
        maker = b.cast(result, element).producer
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


def _scales_exactly(node: Node) -> bool:
    """Whether a node multiplies or divides by powers of two alone."""
    others = node.inputs if node.op == "Mul" else node.inputs[1:] if node.op == "Div" else []
    return any(map(_is_power_of_two, others))


def _halves_exactly(node: Node) -> bool:
    """Whether a QuantizeLinear divides by powers of two alone, which rounds nothing."""
    return node.op == "QuantizeLinear" and _is_power_of_two(node.input(1))


def _is_power_of_two(value: Value | None) -> bool:
    if value is None or value.constant is None or value.constant.size > _MANY:
        return False
    numbers = value.constant.array()
    if not _is_float(value):
        return False
    return bool((np.abs(np.frexp(numbers.astype(np.float64))[0]) == 0.5).all())


def _moved(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """How far engines may move the numbers and the results of a FakeQuantize: so that the number
    of steps from its lowest number to 0 is whole, if it nearly is."""
    tensors = [None if value is None else value.constant for value in node.inputs[1:5]]
    if node.outputs[0].element is not F32 or not node.outputs[0].shape:
        return None
    bounds = [t.array().astype(np.float64) for t in tensors if t is not None and t.size <= _MANY]
    if len(bounds) < 4:
        return None
    found = []
    for low, high in (bounds[:2], bounds[2:]):
        with np.errstate(all="ignore"):
            step = (high - low) / (node.attributes["levels"] - 1)
            part = low / step - np.rint(low / step)
            found.append(np.where(abs(part) <= _NEARLY, abs(part * step), 0.0).astype(np.float32))
    return (found[0], found[1]) if any(one.any() for one in found) else None


def _lowest(b: Builder, node: Node) -> Value | None:
    """The lowest numbers of an operator in `_OF_LEVELS`. Engines sum floats of 16 bits in
    wider ones, and 32 bits are no levels."""
    if node.op == "FakeQuantize":
        return node.operand(3) if node.operand(3).element is F32 else None
    data, scale = node.inputs[:2] if node.op == "DequantizeLinear" else (None, None)
    if not data or not scale or scale.element is not F32 or data.element not in (U8, I8, U16, I16):
        return None
    zero, bottom = node.input(2), b.constant(float(data.element.bounds[0]))
    with b:
        return scale * (bottom if zero is None else bottom - b.cast(zero, F32))


def _parts(shape: Shape) -> list[Shape]:
    """Two shapes that are broadcast to this one: one has its first sizes, the other its last ones.
    The shape itself if it has less than two."""
    if shape is None or len(shape) < 2:
        return [shape]
    first, last = shape[: (len(shape) + 1) // 2], shape[(len(shape) + 1) // 2 :]
    return [(*first, *(1 for _ in last)), (*(1 for _ in first), *last)]


def _keeps_elements(node: Node) -> bool:
    """Whether the floats that a node gives are elements of its first input, with all their bits."""
    if node.op == "Cast":
        first = node.inputs[0]
        return first is not None and _bits(node.outputs[0]) >= _bits(first)
    return has_trait(node.op, "elements_of_first")


def _bits(value: Value) -> int:
    return 0 if value.element is None else value.element.bits


def _epsilon(element: Element) -> float:
    return float(ml_dtypes.finfo(element.dtype).eps)  # type: ignore[no-untyped-call]


def _has_many(value: Value) -> bool:
    """Whether a value may have more than one element."""
    return value.shape is None or any(size != 1 for size in value.shape)


def _is_constant(value: Value) -> bool:
    return value.constant is not None


def _is_whole_constant(value: Value) -> bool:
    if value.constant is None or value.constant.size > _MANY or not _is_float(value):
        return False
    numbers = value.constant.array().astype(np.float64)
    return bool((numbers == np.rint(numbers)).all())


def _is_float(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.element in _FLOATS
