"""Where the numbers of an input end up, and what they may be there.

An integer input may be an index, an axis, a size or a count: its consumers tell which. The search
follows the neutral graph from the input to an operator's input, which the operators' rows say the
range of, or a table by its name (`depth`, `repeats`, ...). Arithmetic on the way is undone
backwards. A number that a consumer compares with is a mark: an input that has it, and its
neighbours, tells `<` from `<=`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.indexes import demanded, index_range, is_index
from bridge.neutral.ports import Carried, Invariant, Iteration, Sliced, Yield
from bridge.neutral.types import BOOL, Dim
from bridge.vocabulary import has_trait, operator

Bounds = tuple[float, float]
"""The lowest and the highest number."""

Inverse = Callable[[Bounds], Bounds]
"""Gives the bounds of an input from the bounds of what is computed from it."""

_RANGES = {
    "block_shape": (1, 2), "delta": (1, 1), "depth": (2, 5), "dft_length": (1, 4), "ends": (1, 3),
    "frame_length": (1, 4), "frame_step": (1, 4), "image_shape": (1, 4), "k": (-1, 1),
    "limit": (2, 5), "max_output_boxes_per_class": (1, 3), "num_segments": (1, 3),
    "offsets": (0, 0), "output_shape": (1, 4), "pads": (0, 1), "position": (0, 0),
    "position_ids": (0, 1), "repeats": (1, 2), "scales": (1, 2), "segment_ids": (0, 0),
    "shape": (1, 1), "size": (1, 4), "sizes": (1, 4), "split": (1, 1), "split_lengths": (1, 1),
    "start": (0, 1), "starts": (0, 0), "steps": (1, 1), "trip_count": (0, 3),
    "write_indices": (0, 0), "pads_begin": (0, 1), "pads_end": (0, 1), "crops_begin": (0, 0),
    "crops_end": (0, 0), "scales_or_sizes": (1, 4), "output_size": (1, 4), "image_size": (8, 16),
}  # fmt: skip
"""The lowest and highest value of inputs that are no indexes."""

_POSITIONS = frozenset({"position", "position_ids", "start", "pads_begin", "pads_end"})
"""Inputs with no meaning beyond their range, as indexes have none."""

_FIRST = frozenset({"size", "start", "output_size"})
"""First inputs that an operator does not work on."""

_SECOND_OPERANDS = {
    ("Div", "B"): (1, 5),
    ("Mod", "B"): (1, 5),
    ("Pow", "Y"): (0, 3),
}
"""Numbers that must not be zero, or stay small: integers, and exponents."""

_COMPARING = frozenset({*OPPOSITES, "And", "Or", "Not"})

LIMITING = frozenset({*OPPOSITES, "Clip", "FakeQuantize", "Max", "Min"})
"""Operators for which the numbers around a constant are unlike others."""

_HANDS_NAN_ON = _COMPARING | {
    "Abs", "Add", "Cast", "Constant", "Div", "If", "IsInf", "IsNaN", "Mul", "Neg", "ReduceMean",
    "ReduceSum", "Shape", "Size", "Sqrt", "Sub", "Where", "Xor",
}  # fmt: skip
"""Operators for which engines agree about NaN. Some processors' Greater does not, of an IR that has
no workaround. OpenVINO's Min, Max, Clip, Relu, Exp, TopK, ArgMax,
Softmax and pooling drop it, or choose another element."""

_IN_32_BITS = frozenset({"Cast", "Identity", "If", "Loop", "TopK", "Where"})
"""Operators that hand elements on, but that OpenVINO runs in 32 bits."""

_OF_BITS = frozenset({"BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"})

_MASKING = _COMPARING | {"Add", "Div", "Max", "Min", "Mul", "Neg", "Sub", "Where", "Xor"}
"""Operators between a mask and the scores that it masks."""

_OF_EQUALS = frozenset({"Ceil", "Floor", "ReduceMax", "ReduceMean", "ReduceMin", "Round"})
"""Operators that give of equal numbers the same number, or one near it."""

_NUMBERS = frozenset({"int", "uint", "float"})
_HALVES = (0.5, 1.5, 2.5)  # which round to the even neighbour
_FARTHEST = 1e4  # engines round larger numbers unlike
_BEYOND = 16  # numbers that are cut off
_LARGEST_WHOLE = 1 << 24  # which every engine holds exactly
_MARKED = 8  # elements of a constant that marks are taken from, at most
_KEYS = 1 << 10  # of a table, or thresholds of trees
_LARGEST_KNOWN = 1 << 20  # elements of a constant whose ends are looked for


@dataclass(frozen=True)
class Trail:
    """What leads from a model's input to a value. `back` undoes it. `is_exact` is set if the value
    has the same numbers, or others of which none is rounded; `is_known` if `back` is no guess."""

    back: Inverse = lambda bounds: bounds
    is_exact: bool = True
    is_known: bool = True


@dataclass(frozen=True)
class Use:
    """An input of a node that has the numbers of a model's input, or what is computed of them."""

    node: Node
    index: int
    way: Trail

    @cached_property
    def name(self) -> str:
        """The name of the node's input in the operator's definition."""
        if self.node.op == "Loop":
            return ("trip_count", "condition")[self.index] if self.index < 2 else ""
        return _name(self.node, self.index)

    @property
    def is_index(self) -> bool:
        """Whether a number beyond its range means nothing."""
        is_place = self.name in _POSITIONS and (self.index > 0 or self.name in _FIRST)
        return is_index(self.node, self.index) or is_place

    @cached_property
    def demand(self) -> str:
        """What the node demands of the elements, if it gets those of the model's input."""
        is_same = self.way.is_known and self.way.back((3.0, 5.0)) == (3.0, 5.0)
        return demanded(self.node, self.index) if is_same else ""

    def bounds(
        self, size: Callable[[Dim], int], trips: Bounds | None, whole: bool
    ) -> Bounds | None:
        """What the model's input may be, None if this use does not say it. `size` gives the size of
        a dimension, `trips` other trip counts than usual; `whole` is set for integers."""
        node, name = self.node, self.name
        of_second = whole or node.op == "Pow"
        found: Bounds | None = _SECOND_OPERANDS.get((node.op, name)) if of_second else None
        # The first input is what an operator works on.
        works_on = self.index == 0 and node.op != "Loop" and name not in _FIRST
        if is_index(node, self.index):
            range = index_range(node, self.index)
            least = range.least if range else 0
            found = (range.bounds(size) if range else None) or (least, least)
        elif found is None and not works_on:
            found = (trips if name == "trip_count" else None) or _RANGES.get(name)
        return None if found is None else self.way.back(found)

    @property
    def rows(self) -> Sequence[int]:
        """How many rows there are of a table that it chooses from."""
        range = index_range(self.node, self.index) if is_index(self.node, self.index) else None
        return [n for n in range.sizes if isinstance(n, int)] if range else []

    def limits(self) -> Iterator[float]:
        """Small constants around which the node does not treat all numbers alike."""
        if not self.way.is_known:
            return
        others = [value for place, value in enumerate(self.node.inputs) if place != self.index]
        known = [_numbers(value) for value in others]
        if self.node.op in LIMITING:
            yield from (number for numbers in known for number in numbers)
        elif self.node.op.startswith("ai.onnx.ml::"):
            get = self.node.attributes.get
            for name in ("nodes_values", "keys_int64s", "keys_floats"):
                yield from map(float, (get(name) or ())[:_KEYS])
        elif self.node.op == "Loop" and self.index == 0:
            yield from _iterations(self.node)
        elif self.node.op == "Round":
            yield from _HALVES
        elif self.node.op == "QuantizeLinear" and self.index == 0:
            element = self.node.outputs[0].element
            zeros = known[1] if len(known) > 1 and known[1] else [0.0]
            for scale, zero in product(known[0], dict.fromkeys(zeros)):
                # Engines agree about halves if the division does not round.
                yield from (half * scale for half in _HALVES if math.frexp(scale)[0] == 0.5)
                if element is not None and element.is_integer:
                    yield from ((end - zero) * scale for end in element.bounds)


def _iterations(loop: Node) -> Iterator[float]:
    """Small constants with which a Loop compares the number of an iteration."""
    for body in loop.bodies:
        numbers = {value for value, port in body.entries() if isinstance(port, Iteration)}
        for node in body.graph.nodes:
            if node.op in LIMITING and not numbers.isdisjoint(node.inputs):
                yield from (number for value in node.inputs for number in _numbers(value))


def _around(number: float, step: float) -> tuple[float, ...]:
    """A number, its neighbours, and others on both sides of zero."""
    return number, number - step, number + step, -number, -number / 2, 2 * number


@dataclass
class InputUses:
    """All uses of an input. `is_mask` is set if it says which keys count in a softmax, `is_wide` if
    engines agree about integers of the whole type, `takes_nan` if they agree about NaN.
    `further` are its uses in another file, `far` numbers whose exponentials overflow."""

    is_whole: bool = False
    all: list[Use] = field(default_factory=list)
    is_mask: bool = False
    is_wide: bool = True
    takes_nan: bool = False
    further: list[Use] = field(default_factory=list)
    far: Sequence[float] = (100.0, -100.0)

    @cached_property
    def is_yes_or_no(self) -> bool:
        """Whether an integer is 0 or 1."""
        taken = (is_taken_from_one(use.node, use.index) for use in self.all)
        return self.is_mask or (self.is_whole and any(taken))

    @property
    def special(self) -> list[float]:
        """NaN, -0.0 and infinities, if a file may tell them from others and engines agree."""
        ops = {use.node.op for use in (*self.all, *self.further)}
        if not self.takes_nan or ops.isdisjoint({*LIMITING, "IsInf", "IsNaN"}):
            return []
        return [math.nan, -0.0, *((math.inf, -math.inf) if "IsInf" in ops else ())]

    @cached_property
    def marks(self) -> list[float]:
        """Numbers that the model, or the other file, may tell from others, the limits first. Where
        arithmetic before a limit rounds, engines may take the limit for its neighbour: so it is
        left out."""
        found: dict[int, list[float]] = {}
        for use in (*self.all, *self.further):
            for limit in use.limits():
                step = 1.0 if self.is_whole else (abs(limit) or 1.0) / 640
                for place, number in enumerate(_around(limit, step)):
                    low, high = use.way.back((number, number))
                    most = _LARGEST_WHOLE if self.is_whole else _FARTHEST
                    if low == high and abs(low) <= most and (place or use.way.is_exact):
                        found.setdefault(place, []).append(round(low) if self.is_whole else low)
        return [*dict.fromkeys(mark for place in sorted(found) for mark in found[place])]

    @cached_property
    def columns(self) -> dict[int, list[float]]:
        """Numbers around the thresholds of trees, by the column that they are compared with."""
        found: dict[int, list[float]] = {}
        for use in (*self.all, *self.further):
            of, names = use.node.attributes, ("nodes_featureids", "nodes_values", "nodes_modes")
            if all(of.get(name) for name in names) and use.way.is_known:
                each = zip(*(of[name] for name in names), strict=True)
                for column, limit, mode in [*each][:_KEYS]:
                    step = (abs(limit) or 1.0) / 640
                    around = [limit, limit - step, limit + step] if mode != "LEAF" else []
                    found.setdefault(column, []).extend(around)
        return found


@dataclass(frozen=True)
class Consumers:
    """Every value of a graph and all nested in it, with the nodes that take it as an input, and the
    outputs of nodes that it becomes where it leaves their bodies."""

    of: dict[Value, list[tuple[Node, int]]] = field(default_factory=dict)
    leaving: dict[Value, list[Value]] = field(default_factory=dict)


def consumers_of(graph: Graph) -> Consumers:
    """The consumers of all values of a graph."""
    table = Consumers()
    for node in graph.walk():
        for index, value in enumerate(node.inputs):
            if value is not None:
                table.of.setdefault(value, []).append((node, index))
        for body in node.bodies:
            for value, port in body.exits():
                if isinstance(port, Yield) and port.output is not None:
                    table.leaving.setdefault(value, []).append(node.outputs[port.output])
    return table


def uses_of(
    value: Value, consumers: Consumers, alike: bool = False, is_ir: bool = False
) -> InputUses:
    """The uses of an input of a model. `alike` is set if one engine runs both files."""
    element = value.element
    uses = InputUses(element is not None and not element.is_float)
    waiting = [(value, Trail())]
    seen = {value}
    while waiting:
        one, way = waiting.pop()
        reached = [(found, way) for found in consumers.leaving.get(one, ())]
        for node, index in consumers.of.get(one, ()):
            uses.all.append(Use(node, index, way))
            moved = [*_handed_on(node, index)]
            uses.is_wide &= (
                alike
                or (bool(moved) and node.op not in _IN_32_BITS)
                or (node.op in _OF_BITS and element is not None and element.bits <= 32)
            )
            reached += [(found, way) for found in moved]
            reached += _computed(node, index, way)
        for found, its in reached:
            if found not in seen:
                seen.add(found)
                waiting.append((found, its))
    if not uses.is_whole:
        uses.takes_nan = _takes_nan(value, consumers, alike, is_ir)
    if uses.is_whole and (value.rank or 0) > 1 and not any(use.is_index for use in uses.all):
        uses.is_mask = _masks(value, consumers)
    return uses


def _numbers(value: Value | None) -> list[float]:
    """The numbers of a small constant."""
    tensor = None if value is None else value.constant
    if tensor is None or tensor.size > _MARKED or tensor.element.kind not in _NUMBERS:
        return []
    return [*map(float, tensor.array().astype(float).reshape(-1))]


def _name(node: Node, index: int) -> str:
    row = operator(node.op)
    if row is None or not row.inputs:
        return ""
    return row.inputs[min(index, len(row.inputs) - 1)].rstrip("?*")


def _handed_on(node: Node, index: int) -> Iterator[Value]:
    """The values to which a node hands the elements of an input."""
    of_first = index == 0 and has_trait(node.op, "elements_of_first")
    if of_first or has_trait(node.op, "elements_of_all") or (node.op == "Where" and index):
        yield node.outputs[0]
    for body in node.bodies:
        for inner, port in body.entries():
            if isinstance(port, Invariant | Carried | Sliced) and port.input == index:
                yield inner


def _computed(node: Node, index: int, way: Trail) -> Iterator[tuple[Value, Trail]]:
    """The value that a node computes with one of its inputs, and the way to it."""
    if node.op in _OF_EQUALS and index == 0:
        exact = way.is_exact and node.op in ("ReduceMax", "ReduceMin")
        yield node.outputs[0], Trail(way.back, exact, way.is_known)
    if node.op not in _UNDONE or (node.op == "Clip" and index):
        return
    others = [value for place, value in enumerate(node.inputs) if place != index and value]
    tensors = [value.constant for value in others]
    arrays = [t.array() if t and t.size <= _LARGEST_KNOWN else None for t in tensors]
    known = [float(x) for x in arrays if x is not None and x.size for x in (x.min(), x.max())]
    is_known = len(known) == 2 * len(others)
    ends = (min(known), max(known)) if known and is_known else None
    value = node.outputs[0]
    whole = value.element is not None and not value.element.is_float
    yield (
        value,
        Trail(
            lambda bounds: way.back(_undone(node.op, bounds, ends, index, whole)),
            way.is_exact and (whole or node.op not in _ROUNDED),
            way.is_known and is_known and node.op != "Mod",
        ),
    )


_ROUNDED = frozenset({"Add", "Div", "Mul", "Sub"})
_UNDONE = _ROUNDED | {"Abs", "Clip", "Max", "Min", "Mod", "Neg"}


def _undone(op: str, bounds: Bounds, ends: Bounds | None, index: int, whole: bool) -> Bounds:
    """What an operand may be, at place `index`, if the result is within bounds. The other operand
    is between its `ends`; one that is not known gets its share."""
    low, high = bounds
    if op == "Neg":
        return -high, -low
    if op == "Abs":
        return (low, high) if low == high else (-high, high)
    if ends is None:
        root = math.sqrt(max(high, 0))
        shares = {"Add": (low / 2, high / 2), "Mul": (max(low, 0), root), "Sub": (0, 0)}
        return bounds if op == "Sub" and not index else shares.get(op, bounds)
    least, most = ends
    factor = max(ends, key=abs)
    match op:
        case "Add":
            return low - least, high - most
        case "Sub":
            return (low + most, high + least) if not index else (most - high, least - low)
        case "Mul" if not factor:
            return -math.inf, math.inf
        case "Mul":
            return min(low / factor, high / factor), max(low / factor, high / factor)
        case "Div" if not index and (least >= 1 or (least == most and least > 0)):
            return low * most, high * least + whole * (least - 1)
        case "Mod" if not index and 0 < most <= high + 1:
            return min(low, 0), math.inf
    # What is cut off is free; numbers near the cut show most.
    is_cut = op in ("Clip", "Max"), op in ("Clip", "Min")
    return (
        least - _BEYOND if is_cut[0] and least >= low else low,
        most + _BEYOND if is_cut[1] and most <= high else high,
    )


def _takes_nan(value: Value, consumers: Consumers, alike: bool, is_ir: bool) -> bool:
    """Whether engines agree about NaN in everything that is computed from a value."""
    waiting, seen = [value], {value}
    while waiting:
        before = waiting.pop()
        reached = [*consumers.leaving.get(before, ())]
        for node, index in consumers.of.get(before, ()):
            moved = [*_handed_on(node, index)]
            handed = node.op != "Cast" and node.op in _HANDS_NAN_ON
            to_whole = not (handed or node.bodies) and not all(map(_is_float, node.outputs))
            differs = is_ir and node.op in ("Greater", "GreaterOrEqual")
            if to_whole or differs or not (moved or alike or node.op in _HANDS_NAN_ON):
                return False
            reached += [*node.outputs, *moved]
        for found in reached:
            if found not in seen and _is_float(found):
                seen.add(found)
                waiting.append(found)
    return True


def _is_float(value: Value | None) -> bool:
    return value is not None and value.element is not None and value.element.is_float


def _masks(value: Value, consumers: Consumers) -> bool:
    """Whether a value says what counts in a softmax: it is compared, selects, is taken from 1 or is
    true or false, before it gets there."""
    waiting = [(value, value.element is BOOL)]
    seen = set(waiting)
    while waiting:
        one, chooses = waiting.pop()
        for node, index in consumers.of.get(one, ()):
            if (index and "mask" in _name(node, index)) or (chooses and node.op == "Softmax"):
                return True
            made = chooses or node.op in _COMPARING or is_taken_from_one(node, index)
            made |= node.op == "Where" and index == 0
            reached = [*_handed_on(node, index)]
            reached += [node.outputs[0]] if node.op in _MASKING else []
            for found in ((inner, made) for inner in reached):
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)
    return False


def is_taken_from_one(node: Node, index: int) -> bool:
    """Whether a node subtracts an input from 1, as models invert masks. Only the whole numbers 0
    and 1 make sense there. Others overflow when they are multiplied by the lowest float."""
    one = node.input(0)
    if node.op != "Sub" or index != 1 or one is None or one.constant is None:
        return False
    return one.constant.size == 1 and float(one.constant.array().reshape(())) == 1
