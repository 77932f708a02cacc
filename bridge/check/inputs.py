"""Seeded inputs for a model: the right types, sizes that agree, integers that mean something.

An integer input may be an index, an axis, a size or a count: its consumers tell which. The search
follows the neutral graph from the input to an operator's input. The name of the operator's input
(`indices`, `axes`, `repeats`, ...) selects the range in the table `RANGES`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridge.check.own_inputs import InputSet
from bridge.errors import InvalidModelError, UsageError
from bridge.neutral.graph import Graph, Model, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Invariant
from bridge.neutral.types import (
    ANY,
    Dim,
    Element,
    ForeignType,
    Interval,
    OptionalType,
    SequenceType,
    Shape,
    Type,
    high,
    innermost,
    low,
    size_of,
)
from bridge.options import Ranges
from bridge.passes.strings.vocabularies import words_of_inputs
from bridge.vocabulary import has_trait, operator

# The lowest and highest value of an operator's input. The argument is the size of the indexed or
# counted axis, if it is known, or the rank for axes.
RANGES: dict[str, Callable[[int], tuple[int, int]]] = {
    "indices": lambda size: (0, size - 1),
    "write_indices": lambda size: (0, 0),
    "target": lambda size: (0, size - 1),
    "labels": lambda size: (0, size - 1),
    "axis": lambda size: (0, size - 1),
    "axes": lambda size: (0, size - 1),
    "K": lambda size: (1, size),
    "k": lambda size: (-1, 1),
    "depth": lambda size: (2, 5),
    "trip_count": lambda size: (0, 3),
    "repeats": lambda size: (1, 2),
    "shape": lambda size: (1, 1),
    "sizes": lambda size: (1, 4),
    "scales": lambda size: (1, 2),
    "size": lambda size: (1, 4),
    "output_shape": lambda size: (1, 4),
    "image_shape": lambda size: (1, 4),
    "split": lambda size: (1, 1),
    "split_lengths": lambda size: (1, 1),
    "pads": lambda size: (0, 1),
    "starts": lambda size: (0, 0),
    "ends": lambda size: (1, 3),
    "steps": lambda size: (1, 1),
    "start": lambda size: (0, 1),
    "limit": lambda size: (2, 5),
    "delta": lambda size: (1, 1),
    "sequence_lens": lambda size: (1, size),
    "sequence_lengths": lambda size: (1, size),
    "nonpad_kv_seqlen": lambda size: (1, size),
    "position": lambda size: (0, 0),
    "max_output_boxes_per_class": lambda size: (1, 3),
    "position_ids": lambda size: (0, 1),
    "block_shape": lambda size: (1, 2),
    "dft_length": lambda size: (1, 4),
    "frame_length": lambda size: (1, 4),
    "frame_step": lambda size: (1, 4),
}

# Inputs that are a share or a probability.
_UNIT = frozenset({"iou_threshold", "score_threshold", "ratio"})

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

_INDEXES = frozenset({"indices", "target", "labels", "axis", "axes", "position", "position_ids"})
_LARGEST_COUNT = 16  # that a recipe may ask for
_LARGEST_INPUT = 1 << 28  # elements

_AXIS = re.compile(r"\.\d+$")
"""The end of a symbol that is the key of an axis (`demands.share_symbols`)."""

OWN_NAMES = "bridge."
"""The start of the names of inputs that a check adds."""

_WORDS = ("", "a", "bridge", "Straße", "two words", "10")


@dataclass(frozen=True)
class Recipe:
    """A seed that inputs are drawn from, and choices that replace drawn sizes and numbers.

    `sizes` has dimensions by symbol, or by `input.axis` if a dimension has no symbol. Each is a
    size, or a range to draw the size from. `fills` are numbers that fill a whole input, `scales`
    are factors for drawn numbers, `ranges` are limits for drawn numbers. `values` are inputs that
    are not drawn. `own` are inputs that a user gave; fills and scales may change them. `call` is
    the number of a call in a row, 0 for other inputs.
    """

    seed: int = 0
    sizes: Mapping[str, int | Interval] = field(default_factory=dict)
    fills: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, np.ndarray] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    own: InputSet | None = None
    call: int = 0

    @property
    def chosen(self) -> frozenset[str]:
        """The inputs whose numbers it gives or limits."""
        return frozenset({*self.fills, *self.ranges})

    @property
    def is_own(self) -> bool:
        """Whether a user gave its inputs."""
        return self.own is not None and not (self.fills or self.scales)

    def __str__(self) -> str:
        """The recipe as text for people: `seed 3, N = 512, mode filled with 7`."""
        parts = [f"seed {self.seed}" if self.own is None else self.own.where]
        if self.call:
            return f"{parts[0]}, call {self.call} in a row"
        parts += [f"{key} = {size}" for key, size in self.sizes.items()]
        parts += [
            f"{name} filled with {number:g}"
            for name, number in self.fills.items()
            if not name.startswith(OWN_NAMES)
        ]
        parts += [f"{name} times {factor:g}" for name, factor in self.scales.items()]
        return ", ".join(parts)


@dataclass(frozen=True)
class Counts:
    """Sizes and inputs that count others. `sums` are sizes that are the sum of two others. If the
    sum has a size, the first of the two follows from it, unless it is fixed. `numbers` are inputs
    filled with a sum of sizes."""

    sums: dict[int | str, tuple[Dim, Dim, bool]] = field(default_factory=dict)
    numbers: dict[str, tuple[Dim, ...]] = field(default_factory=dict)


def make_inputs(model: Model, recipe: Recipe | None = None) -> dict[str, Any]:
    """One value for each input of the model, by name; the same recipe gives the same values.

    Inputs that have a default in the file are left out. UsageError where the sizes are too large.
    """
    return Inputs(model).make(recipe or Recipe())


class Inputs:
    """The inputs of a model, for many recipes: their uses are found once."""

    def __init__(self, model: Model, counts: Counts | None = None) -> None:
        self._counts = counts or Counts()
        consumers = _consumers(model.graph)
        self._words = words_of_inputs(model.graph)
        self.values = [value for value in model.graph.inputs if value not in model.defaults]
        self._uses = {value: list(_uses(value, consumers)) for value in self.values}

    @property
    def sums(self) -> Set[int | str]:
        """The sizes that are sums of other sizes."""
        return self._counts.sums.keys()

    def make(self, recipe: Recipe, largest: int = _LARGEST_INPUT) -> dict[str, Any]:
        """See `make_inputs`; `largest` is the number of elements that an input may have."""
        maker = _Maker(recipe, largest, self._words, self._counts)
        return {value.name: maker.make(value, self._uses[value]) for value in self.values}


def free_dimensions(model: Model) -> list[str]:
    """The possible keys of `Recipe.sizes`: the symbol, or `input.axis`, of each open dimension of
    an input. An input of unknown rank has `input.*`."""
    found: list[str] = []
    for value in model.graph.inputs:
        if innermost(value.type).shape is None:
            found.append(f"{value.name}.*")
        found += open_sizes(value)
    return list(dict.fromkeys(found))


def keys_of(value: Value) -> list[str]:
    """The keys of an input's dimensions without a symbol: `input.axis`."""
    return [f"{value.name}.{axis}" for axis in range(len(innermost(value.type).shape or ()))]


def open_sizes(value: Value) -> dict[str, Dim]:
    """The dimensions of an input that the model leaves open, by their keys in `Recipe.sizes`."""
    dims = innermost(value.type).shape or ()
    return {
        dim if isinstance(dim, str) else key: dim
        for key, dim in zip(keys_of(value), dims, strict=True)
        if not isinstance(dim, int)
    }


class _Maker:
    """Draws the inputs of one recipe. Sizes, once drawn, hold for all inputs."""

    def __init__(
        self,
        recipe: Recipe,
        largest: int,
        words: Mapping[Value, Sequence[str]],
        counts: Counts,
    ) -> None:
        self.recipe = recipe
        self.counts = counts
        self.largest = largest
        self.words = words
        self.rng = np.random.default_rng(recipe.seed)
        self.sizes = {key: size for key, size in recipe.sizes.items() if isinstance(size, int)}
        self.length = int(self.rng.integers(1, 4))  # of all sequences
        # Dimensions without a symbol are often the same one, a batch say.
        self.common = int(self.rng.integers(1, 5))

    def make(self, value: Value, uses: InputUses) -> Any:
        """A value for one input of the graph."""
        recipe = self.recipe
        if value.name in recipe.values:
            return recipe.values[value.name]
        if recipe.own is not None and value.name not in {*recipe.fills, *recipe.scales}:
            return recipe.own.inputs[value.name]
        return self._of_type(value, value.type, uses)

    def _of_type(self, value: Value, type: Type, uses: InputUses) -> Any:
        if isinstance(type, SequenceType):
            return [self._of_type(value, type.item, uses) for _ in range(self.length)]
        if isinstance(type, OptionalType):
            present = bool(self.rng.integers(0, 2))
            return self._of_type(value, type.item, uses) if present else None
        if isinstance(type, ForeignType) or type.element is None:
            raise InvalidModelError(f"input '{value.name}' is {type}: no values are made for that")
        own = self._own(value)
        shape = self.shape(value.name, type.shape) if own is None else own.shape
        if size_of(shape) > self.largest:
            raise UsageError(
                f'the input "{value.name}" of shape {list(shape)} is too large for a check; choose '
                "smaller sizes"
            )
        array = self._array(value, type.element, shape, uses)
        if array.dtype.kind == "f" and (type.element.is_integer or type.element.kind == "bool"):
            bits = min(type.element.bits, 53)  # a cast of what does not fit is not defined
            top = float((1 << (bits - type.element.is_signed)) - 1)
            array = np.clip(array, -top if type.element.is_signed else 0.0, top)
        with np.errstate(all="ignore"):
            return np.asarray(array).astype(type.element.dtype)

    def _own(self, value: Value) -> np.ndarray | None:
        """The array that a user gave for an input."""
        found = self.recipe.own.inputs[value.name] if self.recipe.own else None
        return found if isinstance(found, np.ndarray) else None

    def _array(
        self, value: Value, element: Element, shape: tuple[int, ...], uses: InputUses
    ) -> np.ndarray:
        """The drawn or chosen numbers of a tensor."""
        words, counted = self.words.get(value), self.counts.numbers.get(value.name)
        limits, own = self.recipe.ranges.get(value.name), self._own(value)
        if counted and own is None:
            return np.full(shape, sum(self.size(dim, "") for dim in counted))
        if own is not None:
            array = drawn = own
        elif limits:
            array = drawn = _between(self.rng, element, limits, shape)
        elif words:
            array = drawn = _drawn(self.rng, words, shape)
        else:
            array = drawn = self._tensor(element, shape, uses)
        if value.name in self.recipe.scales:
            array = array * self.recipe.scales[value.name]
        if value.name in self.recipe.fills:
            array = np.full(array.shape, self.recipe.fills[value.name])
        bounds = self._bounds(uses)
        if bounds is not None and array is not drawn:
            # No index beyond the end, and no trip count of 2**63, which would run for years.
            names = {_input_name(node, index) for node, index in uses}
            highest = bounds[1] if names & _INDEXES else max(bounds[1], _LARGEST_COUNT)
            array = np.clip(array, bounds[0], highest)
        if limits:
            array = np.clip(array, *_ends(element, limits))
        return array

    def _tensor(self, element: Element, shape: tuple[int, ...], uses: InputUses) -> np.ndarray:
        for node, index in uses:
            exact = self._exact(node, index, shape)
            if exact is not None:
                return exact
        if any(_input_name(node, index) in _UNIT for node, index in uses):
            return self.rng.uniform(0.0, 0.9, shape)
        if element.is_integer and any(_is_taken_from_one(node, index) for node, index in uses):
            return np.asarray(self.rng.integers(0, 2, shape))
        bounds = self._bounds(uses)
        if bounds is not None:
            return np.asarray(self.rng.integers(bounds[0], bounds[1] + 1, shape))
        return _free(self.rng, element, shape)

    def _bounds(self, uses: InputUses) -> tuple[int, int] | None:
        """The lowest and highest value that all uses of an input allow, where any says so."""
        found = (self._range(node, index) for node, index in uses)
        ranges = [pair for pair in found if pair is not None]
        if not ranges:
            return None
        lowest = max(low for low, _ in ranges)
        return lowest, max(lowest, min(high for _, high in ranges))

    def shape(self, name: str, shape: Shape) -> tuple[int, ...]:
        """The sizes of an input's shape; where not even the rank is known, as many dimensions as
        the recipe names, or two."""
        if shape is None:
            rank = 0
            while f"{name}.{rank}" in self.recipe.sizes:
                rank += 1
            shape = (ANY,) * (rank or 2)
        return tuple(self.size(dim, f"{name}.{axis}") for axis, dim in enumerate(shape))

    def size(self, dim: Dim, key: str) -> int:
        """The size of one dimension; `key` names it where it has no symbol."""
        if isinstance(dim, int):
            return dim
        own = self.recipe.sizes.get(key)
        if isinstance(own, int):
            return own
        named = isinstance(dim, str) and not _AXIS.search(dim)
        key = dim if isinstance(dim, str) else key
        self._count(key)
        if key not in self.sizes:
            drawn = int(self.rng.integers(1, 5))
            if not named and self.rng.integers(3):
                drawn = self.common
            dim = self.recipe.sizes.get(key, dim)
            largest = high(dim)
            drawn = max(drawn, low(dim))
            self.sizes[key] = drawn if largest is None else min(drawn, largest)
        return self.sizes[key]

    def _count(self, key: str) -> None:
        """Computes a size that is a sum of two others, or a sum minus the other."""
        for whole, (part, other, fixed) in self.counts.sums.items():
            total = self.sizes.get(whole) if isinstance(whole, str) else whole
            if key == whole and (fixed or total is None):
                self.sizes[key] = self.size(part, "") + self.size(other, "")
            elif key == part and not fixed and total is not None:
                self.sizes[key] = max(total - self.size(other, ""), 0)

    def _range(self, node: Node, index: int) -> tuple[int, int] | None:
        name = _input_name(node, index)
        if (node.op, name) in _SECOND_OPERANDS:
            return _SECOND_OPERANDS[node.op, name]
        if index == 0 and node.op != "Loop" and name not in ("indices", "size"):
            return None  # the first input is what an operator works on
        if name not in RANGES:
            return None
        counted = node.input(_ROWS.get((node.op, index), 0))
        lowest, highest = RANGES[name](self._counted(node, name, counted))
        return lowest, max(lowest, highest)

    def _counted(self, node: Node, name: str, data: Value | None) -> int:
        """The size of the axis of `data` that the node's input `name` indexes or counts, 1 if it is
        unknown."""
        shape = data.shape if data is not None else None
        if node.op == "OneHot":
            return 2
        if shape is None:
            return 1
        if name in ("axis", "axes"):
            return max(len(shape), 1)
        if name == "indices" and node.op in ("GatherND", "ScatterND"):
            return min((self._known(dim) for dim in shape), default=1)
        axis = _axis(node, {"K": -1, "sequence_lengths": 1}.get(name, 0))
        if axis is None or not -len(shape) <= axis < len(shape):
            return 1
        return self._known(shape[axis])

    def _known(self, dim: Dim) -> int:
        if isinstance(dim, str):
            return self.sizes.get(dim, 1)
        return dim if isinstance(dim, int) else max(dim.low, 1)

    def _exact(self, node: Node, index: int, shape: tuple[int, ...]) -> np.ndarray | None:
        """The one value that is sure to work where elements depend on one another."""
        name, data = _input_name(node, index), node.input(0)
        if index == 0 or len(shape) != 1 or data is None or data.shape is None:
            return None
        if name == "axes":
            return np.arange(shape[0])
        if name == "scales" and shape[0] > 2:
            return np.array([1] * (shape[0] - 2) + [2, 2])
        if name in ("shape", "sizes") and len(data.shape) == shape[0]:
            return np.array(
                [self.size(dim, f"{data.name}.{i}") for i, dim in enumerate(data.shape)]
            )
        if name in ("split", "split_lengths") and shape[0]:
            axis = _axis(node, 0) or 0
            total = self.size(data.shape[axis], f"{data.name}.{axis}")
            parts = np.full(shape, total // shape[0])
            parts[-1] += total - parts.sum()
            return parts
        return None


def _drawn(rng: np.random.Generator, words: Sequence[str], shape: tuple[int, ...]) -> np.ndarray:
    """Strings of these words."""
    drawn = rng.choice(np.array(words, dtype=object), shape)
    return np.asarray(drawn, dtype=object).reshape(shape)


def _between(
    rng: np.random.Generator, element: Element, limits: tuple[float, float], shape: tuple[int, ...]
) -> np.ndarray:
    """Numbers within limits."""
    lowest, highest = _ends(element, limits)
    if element.is_float:
        return np.asarray(rng.uniform(lowest, highest, shape))
    return np.asarray(rng.integers(int(lowest), int(highest), shape, endpoint=True))


def _ends(element: Element, limits: tuple[float, float]) -> tuple[float, float]:
    """The lowest and the highest number of a type within limits."""
    if element.is_float:
        return limits
    return math.ceil(limits[0]), math.floor(limits[1])


def _free(rng: np.random.Generator, element: Element, shape: tuple[int, ...]) -> np.ndarray:
    """Values of an input that may be anything."""
    if element.name == "string":
        return _drawn(rng, _WORDS, shape)
    if element.kind == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if element.is_integer:
        top = min(100, (1 << (element.bits - 1)) - 1)
        low = -top if element.is_signed else 0
        return np.asarray(rng.integers(low, top + 1, shape)).astype(element.dtype)
    drawn = rng.standard_normal(shape)
    if element.kind == "complex":
        drawn = drawn + 1j * rng.standard_normal(shape)
    return np.asarray(drawn).astype(element.dtype)


# ------------------------------------------------------------------------------------------------

InputUses = list[tuple[Node, int]]
Consumers = dict[Value, InputUses]


def _consumers(graph: Graph) -> Consumers:
    """Every value of the graph and all nested in it, with the nodes that take it as an input."""
    table: Consumers = {}
    for node in graph.walk():
        for index, value in enumerate(node.inputs):
            if value is not None:
                table.setdefault(value, []).append((node, index))
    return table


def _uses(value: Value, consumers: Consumers) -> Iterator[tuple[Node, int]]:
    """Where a value ends up, through operators that hand it on and into bodies."""
    waiting, seen = [value], {value}
    while waiting:
        for node, index in consumers.get(waiting.pop(), ()):
            yield node, index
            reached: list[Value] = []
            if (index == 0 and has_trait(node.op, "elements_of_first")) or has_trait(
                node.op, "elements_of_all"
            ):
                reached.append(node.outputs[0])
            for body in node.bodies:
                for inner, port in body.entries():
                    if isinstance(port, Invariant | Carried) and port.input == index:
                        reached.append(inner)
            for found in reached:
                if found not in seen:
                    seen.add(found)
                    waiting.append(found)


def _is_taken_from_one(node: Node, index: int) -> bool:
    """Whether a node subtracts an input from 1, as models invert masks. Only the whole numbers 0
    and 1 make sense there. Others overflow when they are multiplied by the lowest float."""
    one = node.input(0)
    if node.op != "Sub" or index != 1 or one is None or one.constant is None:
        return False
    return one.constant.size == 1 and float(one.constant.array().reshape(())) == 1


def _input_name(node: Node, index: int) -> str:
    if node.op == "Loop":
        return ("trip_count", "condition")[index] if index < 2 else ""
    if (node.op, index) in _ROWS:
        return "indices"
    row = operator(node.op)
    if row is None or not row.inputs:
        return ""
    return row.inputs[min(index, len(row.inputs) - 1)].rstrip("?*")


def _axis(node: Node, default: int) -> int | None:
    """The axis an operator works along: an attribute, or an input that must be known."""
    row = operator(node.op)
    if row is not None and "axis" in row.places:
        value = node.input(row.places["axis"])
        known = known_of(value).ints
        return default if value is None else known[0] if known else None
    axis = node.attributes.get("axis", node.attributes.get("time_axis", default))
    return axis if isinstance(axis, int) else default
