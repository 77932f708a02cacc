"""Where the numbers of an input end up, and what they may be there.

An integer input may be an index, an axis, a size or a count: its consumers tell which. The search
follows the neutral graph from the input to an operator's input, whose name (`indices`, `axes`,
`repeats`, ...) selects the range in tables. Arithmetic on the way is undone backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Invariant
from bridge.neutral.types import BOOL, Dim
from bridge.vocabulary import has_trait, operator

Bounds = tuple[float, float]
"""The lowest and the highest number."""

Back = Callable[[Bounds], Bounds]
"""Gives the bounds of an input from the bounds of what is computed from it."""

_PLACES = dict.fromkeys(("indices", "target", "labels", "axis", "axes", "default_index"), 0)
_COUNTS = dict.fromkeys(("K", "sequence_lens", "sequence_lengths", "nonpad_kv_seqlen"), 1)
_OF_SIZE = {**_PLACES, **_COUNTS}
"""The lowest value of inputs that are places in an axis, from 0, or counts of its elements, from
1. With axes, the axis is that of the shape."""

_RANGES = {
    "block_shape": (1, 2), "delta": (1, 1), "depth": (2, 5), "dft_length": (1, 4), "ends": (1, 3),
    "frame_length": (1, 4), "frame_step": (1, 4), "image_shape": (1, 4), "k": (-1, 1),
    "limit": (2, 5), "max_output_boxes_per_class": (1, 3), "num_segments": (1, 3),
    "offsets": (0, 0), "output_shape": (1, 4), "pads": (0, 1), "position": (0, 0),
    "position_ids": (0, 1), "repeats": (1, 2), "scales": (1, 2), "segment_ids": (0, 0),
    "shape": (1, 1), "size": (1, 4), "sizes": (1, 4), "split": (1, 1), "split_lengths": (1, 1),
    "start": (0, 1), "starts": (0, 0), "steps": (1, 1), "trip_count": (0, 3),
    "write_indices": (0, 0),
}  # fmt: skip
"""The lowest and highest value of other inputs."""

LARGE_TRIPS = (10, 16)
"""The range of a trip count in a large input."""

INDEXES = frozenset({*_PLACES, "position", "position_ids"})
"""Inputs with no meaning beyond their range."""

# Inputs that must not be zero, or stay small, in some of the operators that have them.
_SECOND_OPERANDS = {
    ("Div", "B"): (1, 5),
    ("Mod", "B"): (1, 5),
    ("Pow", "Y"): (0, 3),
    ("BitShift", "Y"): (0, 7),
}

# Inputs of onnxruntime's operators that are places in the rows of another input.
_ROWS = {
    ("com.microsoft::EmbedLayerNormalization", 0): 2,
    ("com.microsoft::EmbedLayerNormalization", 1): 4,
    ("com.microsoft::GatherBlockQuantized", 1): 0,
    ("com.microsoft::QEmbedLayerNormalization", 0): 2,
    ("com.microsoft::QEmbedLayerNormalization", 1): 4,
    ("com.microsoft::RotaryEmbedding", 1): 2,
}

_COMPARING = frozenset(
    {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "NotEqual", "And", "Or", "Not"}
)
_TELLING = _COMPARING | {"Clip", "IsInf", "IsNaN", "Max", "Min"}
"""Operators for which NaN or -0.0 is another number than others."""

_HANDS_NAN_ON = _COMPARING | {
    "Abs", "Add", "Cast", "Constant", "Div", "If", "IsInf", "IsNaN", "Mul", "Neg", "Shape",
    "Size", "Sqrt", "Sub", "Where", "Xor",
}  # fmt: skip
"""Operators for which engines agree about NaN. OpenVINO's Min, Max, Clip, Relu, Exp, TopK, ArgMax,
Softmax and pooling drop it, or choose another element."""

_IN_32_BITS = frozenset({"Cast", "Identity", "If", "Loop", "TopK", "Where"})
"""Operators that hand elements on, but that OpenVINO runs in 32 bits."""

_MASKING = _COMPARING | {"Add", "Div", "Max", "Min", "Mul", "Neg", "Sub", "Where", "Xor"}
"""Operators between a mask and the scores that it masks."""


@dataclass(frozen=True)
class Use:
    """An input of a node that has the numbers of a model's input, or what is computed of them."""

    node: Node
    index: int
    back: Back

    @property
    def name(self) -> str:
        """The name of the node's input in the operator's definition."""
        if self.node.op == "Loop":
            return ("trip_count", "condition")[self.index] if self.index < 2 else ""
        if (self.node.op, self.index) in _ROWS:
            return "indices"
        row = operator(self.node.op)
        if row is None or not row.inputs:
            return ""
        return row.inputs[min(self.index, len(row.inputs) - 1)].rstrip("?*")

    def bounds(self, size: Callable[[Dim], int], is_large: bool) -> Bounds | None:
        """What the model's input may be, None if this use does not say it. `size` gives the size of
        a dimension."""
        node, name = self.node, self.name
        found: Bounds | None = _SECOND_OPERANDS.get((node.op, name))
        # The first input is what an operator works on.
        works_on = self.index == 0 and node.op != "Loop" and name not in ("indices", "size")
        if found is None and not works_on:
            found = LARGE_TRIPS if name == "trip_count" and is_large else _RANGES.get(name)
            if name in _OF_SIZE:
                counted = node.input(_ROWS.get((node.op, self.index), 0))
                last = _counted(node, name, counted, size) - 1
                found = _OF_SIZE[name], _OF_SIZE[name] + max(last, 0)
        return None if found is None else self.back(found)


@dataclass
class InputUses:
    """All uses of an input. `is_mask` is set if it says which keys count in a softmax, `is_moved`
    if its numbers are handed on and never computed with, `tells` if -0.0 may change what the model
    chooses, `takes_nan` if NaN may, too, and engines agree about it."""

    all: list[Use] = field(default_factory=list)
    is_mask: bool = False
    is_moved: bool = True
    tells: bool = False
    takes_nan: bool = False


Consumers = dict[Value, list[tuple[Node, int]]]


def consumers_of(graph: Graph) -> Consumers:
    """Every value of the graph and all nested in it, with the nodes that take it as an input."""
    table: Consumers = {}
    for node in graph.walk():
        for index, value in enumerate(node.inputs):
            if value is not None:
                table.setdefault(value, []).append((node, index))
    return table


def uses_of(value: Value, consumers: Consumers) -> InputUses:
    """The uses of an input of a model."""
    uses = InputUses()
    waiting: list[tuple[Value, Back]] = [(value, lambda bounds: bounds)]
    seen = {value}
    while waiting:
        one, back = waiting.pop()
        for node, index in consumers.get(one, ()):
            uses.all.append(Use(node, index, back))
            moved = [*_handed_on(node, index)]
            computed = _computed(node, index, back)
            uses.is_moved &= bool(moved) and node.op not in _IN_32_BITS
            uses.tells |= node.op in _TELLING
            for found, its in (*((found, back) for found in moved), *computed):
                if found not in seen:
                    seen.add(found)
                    waiting.append((found, its))
    if uses.tells and value.element is not None and value.element.is_float:
        uses.takes_nan = _takes_nan(value, consumers)
    is_index = any(use.name in INDEXES for use in uses.all if use.index)
    is_whole = value.element is not None and not value.element.is_float
    if is_whole and (value.rank or 0) > 1 and not is_index:
        uses.is_mask = _masks(value, consumers)
    return uses


def _handed_on(node: Node, index: int) -> Iterator[Value]:
    """The values to which a node hands the elements of an input."""
    of_first = index == 0 and has_trait(node.op, "elements_of_first")
    if of_first or has_trait(node.op, "elements_of_all") or (node.op == "Where" and index):
        yield node.outputs[0]
    for body in node.bodies:
        for inner, port in body.entries():
            if isinstance(port, Invariant | Carried) and port.input == index:
                yield inner


def _computed(node: Node, index: int, back: Back) -> Iterator[tuple[Value, Back]]:
    """The value that a node computes with one of its inputs, and what undoes it."""
    if node.op not in _UNDONE or (node.op == "Clip" and index):
        return
    others = [value for place, value in enumerate(node.inputs) if place != index and value]
    arrays = [None if v.constant is None else v.constant.array() for v in others]
    known = [float(x) for x in arrays if x is not None and x.size for x in (x.min(), x.max())]
    is_known = len(known) == 2 * len(others)
    ends = (min(known), max(known)) if known and is_known else None
    yield node.outputs[0], lambda bounds: back(_undone(node.op, bounds, ends, index))


_UNDONE = frozenset({"Add", "Clip", "Div", "Max", "Min", "Mod", "Mul", "Neg", "Sub"})


def _undone(op: str, bounds: Bounds, ends: Bounds | None, index: int) -> Bounds:
    """What an operand may be, at place `index`, if the result is within bounds. The other operand
    is between its `ends`; one that is not known gets its share."""
    low, high = bounds
    if op == "Neg":
        return -high, -low
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
        case "Div" if not index and least >= 1:
            return low * most, high * least + least - 1
        case "Mod" if not index and 0 < most <= high + 1:
            return min(low, 0), math.inf
    # What is cut off is free.
    is_cut = op in ("Clip", "Max"), op in ("Clip", "Min")
    return (
        -math.inf if is_cut[0] and least >= low else low,
        math.inf if is_cut[1] and most <= high else high,
    )


def _takes_nan(value: Value, consumers: Consumers) -> bool:
    """Whether engines agree about NaN in everything that is computed from a value."""
    waiting, seen = [value], {value}
    while waiting:
        before = waiting.pop()
        for node, index in consumers.get(before, ()):
            moved = [*_handed_on(node, index)]
            to_whole = node.op == "Cast" and _is_float(before) and not _is_float(node.outputs[0])
            if to_whole or not (moved or node.op in _HANDS_NAN_ON):
                return False
            for found in (*node.outputs, *moved):
                if found not in seen:
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
        for node, index in consumers.get(one, ()):
            row = operator(node.op)
            named = row.inputs[min(index, len(row.inputs) - 1)] if row and row.inputs else ""
            if (index and "mask" in named) or (chooses and node.op == "Softmax"):
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


def axis_of(node: Node, default: int) -> int | None:
    """The axis an operator works along: an attribute, or an input that must be known."""
    row = operator(node.op)
    if row is not None and "axis" in row.places:
        value = node.input(row.places["axis"])
        known = known_of(value).ints
        return default if value is None else known[0] if known else None
    axis = node.attributes.get("axis", node.attributes.get("time_axis", default))
    return axis if isinstance(axis, int) else default


def _counted(node: Node, name: str, data: Value | None, size: Callable[[Dim], int]) -> int:
    """The size of the axis of `data` that the node's input `name` indexes or counts, 1 if it is
    unknown."""
    shape: Sequence[Dim] | None = data.shape if data is not None else None
    if node.op == "OneHot":
        return 2
    if shape is None:
        return 1
    if name in ("axis", "axes"):
        return max(len(shape), 1)
    if name == "indices" and node.op in ("GatherND", "ScatterND"):
        return min((size(dim) for dim in shape), default=1)
    axis = axis_of(node, {"K": -1, "sequence_lengths": 1}.get(name, 0))
    if axis is None or not -len(shape) <= axis < len(shape):
        return 1
    return size(shape[axis])
