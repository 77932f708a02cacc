"""Seeded inputs for a model: the right types, sizes that agree, integers that mean something."""

import math
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from bridge.check.inputs.recipe import Recipe
from bridge.check.inputs.sizes import Counts, same_inputs
from bridge.check.inputs.uses import (
    Bounds,
    InputUses,
    Use,
    consumers_of,
    uses_of,
)
from bridge.errors import InvalidModelError, UsageError
from bridge.neutral.graph import Model, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import (
    ANY,
    Dim,
    Element,
    ForeignType,
    OptionalType,
    SequenceType,
    Shape,
    Type,
    high,
    low,
    size_of,
)
from bridge.passes.strings.vocabularies import words_of_inputs

_UNIT = frozenset({"iou_threshold", "score_threshold", "ratio"})
"""Inputs that are a share or a probability."""

_SPREAD = 3  # that sizes of a large input differ
_SHARE = 0.8  # of the rows of a tree's input that have a number near a threshold
_MOST_TRIPS = 128
_LARGEST_WHOLE = 1 << 24  # that every engine holds exactly
_LARGEST_COUNT = 16  # that a recipe may ask for
_MANY_TRIPS = 4  # more than are drawn as a rule
LARGEST_INPUT = 1 << 28  # elements that a check draws for an input
_SOME = 8  # of so many numbers one is NaN, and one -0.0
_COVERED = 4096  # numbers of a range that are drawn one after the other, each once

_AXIS = re.compile(r"\.\d+$")
"""The end of a symbol that is the key of an axis (`sizes.share_symbols`)."""

_MARKED = frozenset({"int", "uint", "float"})

_WORDS = ("", "a", "bridge", "Straße", "two words", "10")


def make_inputs(model: Model, recipe: Recipe | None = None) -> dict[str, Any]:
    """One value for each input of the model, by name; the same recipe gives the same values.

    Inputs that have a default in the file are left out. UsageError where the sizes are too large.
    """
    return Maker(model).make(recipe or Recipe())


class Maker:
    """Makes inputs of a model from many recipes: their uses are found once. `twin` is another file
    that is to compute the same."""

    def __init__(
        self, model: Model, counts: Counts | None = None, twin: Model | None = None
    ) -> None:
        self.counts = counts or Counts()
        consumers = consumers_of(model.graph)
        self._words = words_of_inputs(model.graph)
        self.values = [value for value in model.graph.inputs if value not in model.defaults]
        alike = self.alike = twin is not None and model.format == twin.format == "onnx"
        self.uses = {
            value: uses_of(value, consumers, alike, model.format == "ir") for value in self.values
        }
        if any("Quantize" in node.op for node in model.graph.walk()):
            # One far number changes the steps of all others.
            for uses in self.uses.values():
                uses.far = ()
        if twin is not None:
            consumers = consumers_of(twin.graph)
            for value, its in same_inputs(model, twin).items():
                if value in self.uses:
                    self.uses[value].further = uses_of(its, consumers).all

    def following(self, given: Container[int | str]) -> set[Dim]:
        """The sizes that follow from others, where some are given."""
        sums = self.counts.sums.items()
        parts = {
            part
            for whole, (part, _, fixed) in sums
            if not fixed and (isinstance(whole, int) or whole in given)
        }
        return parts | {whole for whole, _ in sums}

    def make(self, recipe: Recipe, largest: int = LARGEST_INPUT) -> dict[str, Any]:
        """See `make_inputs`; `largest` is the number of elements that an input may have."""
        draw = _Draw(recipe, largest, self._words, self.counts)
        return {value.name: draw.value(value, self.uses[value]) for value in self.values}


class _Draw:
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
        self.large = (recipe.large, recipe.large + _SPREAD) if recipe.large else None
        self.sizes: dict[int | str, int] = {}
        for key, size in recipe.sizes.items():
            if isinstance(size, int):
                self.sizes[key] = size
                self.sizes.setdefault(counts.symbols.get(key, key), size)
        self.length = int(self.rng.integers(1, 4))  # of all sequences
        # Dimensions without a symbol are often the same one, a batch say.
        self.common = self._size()

    def _size(self) -> int:
        return int(self.rng.integers(*self.large or (1, 4), endpoint=True))

    def value(self, value: Value, uses: InputUses) -> Any:
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
                f'the input "{value.name}" of shape {list(shape)} has {size_of(shape):,} elements; '
                f"a check draws up to {self.largest:,}: choose smaller sizes, or give inputs of "
                "your own"
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
        recipe, name = self.recipe, value.name
        words, counted = self.words.get(value), self.counts.numbers.get(name)
        limits, own = recipe.ranges.get(name), self._own(value)
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
        if name in recipe.scales:
            array = array * recipe.scales[name]
        if name in recipe.fills:
            array = np.full(array.shape, recipe.fills[name])
        array = self._spotted(array, name)
        bounds = self._bounds(uses, self.large, _LARGEST_WHOLE)
        if bounds is not None and array is not drawn:
            # No index beyond the end, and no trip count of 2**63, which would run for years.
            is_index = any(use.is_index for use in uses.all)
            trips = _MOST_TRIPS if any(u.name == "trip_count" for u in uses.all) else _LARGEST_COUNT
            array = np.clip(array, bounds[0], max(bounds[1], 0 if is_index else trips))
        # A limit may be less than a large trip count. Few iterations show less.
        bounds = self._bounds(uses, (_MANY_TRIPS, self.large[1]) if self.large else None)
        array = self._marked(array, name, element, bounds, uses)
        if limits:
            array = np.clip(array, *_ends(element, limits))
        is_none = element.kind == "bool" and recipe.scales.get(name) == 0
        if uses.is_mask and own is None and name not in recipe.given and not is_none:
            # A row without a key has no softmax.
            array = np.asarray(array).astype(bool)
            array[..., :1] = True
        return self._obeying(np.asarray(array), uses) if own is None else array

    def _obeying(self, array: np.ndarray, uses: InputUses) -> np.ndarray:
        """The array as operators demand it: see the `values` of a row."""
        for use in uses.all if array.size else ():
            data = use.node.input(0)
            to = use.node.outputs[0].element if use.demand == "fits" else None
            if use.name in _UNIT:
                array = np.clip(array, 0, 1)
            elif to is not None and array.dtype.kind == "f":
                # The end of 32 bits is no float.
                top = np.nextafter(np.float32(to.bounds[1]), np.float32(0))
                array = np.clip(array, to.bounds[0], top if to.bits > 16 else to.bounds[1])
            elif use.demand == "sorted":
                array = np.sort(array, axis=-1)
            elif use.demand in ("boxes", "regions") and array.shape[-1:] in ((4,), (5,)):
                if use.demand == "regions" and data is not None and data.shape:
                    images = max(self._known(data.shape[0]), 1)
                    array[..., 0] = _covering(self.rng, 0, images - 1, array.shape[:-1])
                first, second = np.sort([array[..., -4:-2], array[..., -2:]], axis=0)
                second = np.where(first == second, second + 1, second)
                array = np.concatenate([array[..., :-4], first, second], axis=-1)
            elif use.demand == "distinct":
                array = self._distinct(array, use)
        return array

    def _spotted(self, array: np.ndarray, name: str) -> np.ndarray:
        """The array with the single elements of the recipe."""
        own = {place: n for (of, place), n in self.recipe.spots.items() if of == name}
        if not own:
            return array
        kind = float if any(n != int(n) for n in own.values()) else array.dtype
        flat = array.astype(kind if array.dtype.kind in "iu" else array.dtype).reshape(-1)
        for place, number in own.items():
            if place < flat.size:
                flat[place] = number
        return flat.reshape(array.shape)

    def _distinct(self, array: np.ndarray, use: Use) -> np.ndarray:
        """Places, others where one of them is there twice, unless there are too few."""
        node, data = use.node, use.node.operand(0)
        row = use.bounds(self._known, None, True)
        if row is None or use.node.operand(use.index).rank != array.ndim:
            return array
        if node.op == "ScatterND":
            sizes = [self._known(dim) for dim in data.dims[: array.shape[-1]]]
            flat = np.ravel_multi_index([*np.moveaxis(array, -1, 0).astype(int)], sizes, "clip")
            drawn = _unlike(self.rng, flat.reshape(1, -1), math.prod(sizes))
            return np.stack(np.unravel_index(drawn.reshape(flat.shape), sizes), axis=-1)
        places = known_of(node.input(3)).ints if node.op == "ScatterElements" else None
        axis = places[0] if places else 0
        lines = np.moveaxis(array, axis, -1) if places else array.reshape(-1)
        count = int(row[1]) + 1
        drawn = _unlike(self.rng, lines.reshape(-1, lines.shape[-1]), count).reshape(lines.shape)
        return np.moveaxis(drawn, -1, axis) if places else drawn.reshape(array.shape)

    def _marked(
        self,
        array: np.ndarray,
        name: str,
        element: Element,
        bounds: Bounds | None,
        uses: InputUses,
    ) -> np.ndarray:
        """The array with marks in some elements. Floats have -0.0, too."""
        recipe = self.recipe
        is_fixed = recipe.own is not None or name in recipe.chosen or uses.is_yes_or_no
        if recipe.numbers != "marked" or element.kind not in _MARKED or is_fixed:
            return array
        low, high = bounds or (-math.inf, math.inf)
        if element.is_integer:
            low, high = max(low, element.bounds[0]), min(high, element.bounds[1])
        marks = [mark for mark in uses.marks if low <= mark <= high]
        count, turn = array.size, recipe.turn
        if element.is_float and bounds is None:
            marks = [-0.0, *marks, *uses.far]
        count = min(len(marks), max(count // 2, 1) if count < len(marks) else count)
        flat = array.astype(float if element.is_float else array.dtype).reshape(-1)
        places: Sequence[int] = self.rng.permutation(array.size)[:count].tolist() if marks else []
        for number, place in enumerate(places):
            flat[place] = marks[(turn * count + number) % len(marks)]
        if not (flat.size and array.ndim):
            return flat.reshape(array.shape)
        rows = flat.reshape(-1, array.shape[-1])
        for column, some in uses.columns.items():
            chosen = self.rng.random(len(rows)) < _SHARE
            if some and column < rows.shape[1]:
                rows[chosen, column] = self.rng.choice(some, int(chosen.sum()))
        return rows.reshape(array.shape)

    def _tensor(self, element: Element, shape: tuple[int, ...], uses: InputUses) -> np.ndarray:
        for use in uses.all:
            exact = self._exact(use, shape)
            if exact is not None:
                return exact
        if any(use.name in _UNIT for use in uses.all):
            return self.rng.uniform(0.0, 0.9, shape)
        if element.is_integer and uses.is_yes_or_no:
            return np.asarray(self.rng.integers(0, 2, shape))
        is_wide = self.recipe.numbers == "ends" and uses.is_wide and element.is_integer
        far = element.bounds[1] if is_wide else _LARGEST_COUNT
        bounds = self._bounds(uses, self.large, far)
        if bounds is not None:
            top = min(bounds[1], int(element.bounds[1])) if element.is_integer else bounds[1]
            return _covering(self.rng, bounds[0], top, shape)
        return _free(self.rng, element, shape, self.recipe.numbers, uses)

    def _bounds(
        self, uses: InputUses, trips: Bounds | None, far: float = _LARGEST_COUNT
    ) -> tuple[int, int] | None:
        """The lowest and highest number that all uses of an input allow, where any says so; one
        that none limits is so `far` from the other."""
        found = [(u.bounds(self._known, trips, uses.is_whole), u.way) for u in uses.all]
        ranges = [(pair, way.is_known) for pair, way in found if pair is not None]
        lowest = max((low for (low, _), _ in ranges), default=-math.inf)
        highest = min((high for (_, high), _ in ranges), default=math.inf)
        if lowest > highest:  # Guesses may contradict each other.
            highest = min((high for (_, high), known in ranges if known), default=math.inf)
        if math.isinf(lowest) and math.isinf(highest):
            return None
        # Where arithmetic leaves one end open, a few numbers from the other end will do.
        lowest = highest - far if math.isinf(lowest) else lowest
        highest = lowest + far if math.isinf(highest) else highest
        return math.ceil(lowest), max(math.ceil(lowest), math.floor(highest))

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
        named = isinstance(dim, str) and not _AXIS.search(dim)
        for name in (key, dim):
            own = self.recipe.sizes.get(name) if isinstance(name, str) else None
            if isinstance(own, int):
                return own
        key = dim if isinstance(dim, str) else key
        key = self.counts.symbols.get(key, key)
        self._count(key)
        if key not in self.sizes:
            drawn = self._size()
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

    def _known(self, dim: Dim) -> int:
        if isinstance(dim, str):
            return self.sizes.get(dim, 1)
        return dim if isinstance(dim, int) else max(dim.low, 1)

    def _exact(self, use: Use, shape: tuple[int, ...]) -> np.ndarray | None:
        """The one value that is sure to work where elements depend on one another."""
        name, data = use.name, use.node.input(0)
        if use.index == 0 or len(shape) != 1 or data is None or data.shape is None:
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
            places = known_of(use.node.input(1)).ints if name == "split_lengths" else None
            axis = places[0] if places else use.node.attributes.get("axis", 0)
            total = self.size(data.shape[axis], f"{data.name}.{axis}")
            parts = np.full(shape, total // shape[0])
            parts[-1] += total - parts.sum()
            return parts
        return None


def _drawn(rng: np.random.Generator, words: Sequence[str], shape: tuple[int, ...]) -> np.ndarray:
    """Strings of these words."""
    drawn = rng.choice(np.array(words, dtype=object), shape)
    return np.asarray(drawn, dtype=object).reshape(shape)


def _covering(
    rng: np.random.Generator, lowest: int, highest: int, shape: tuple[int, ...]
) -> np.ndarray:
    """Whole numbers of a range: if there are enough, each at least once; of a long one its ends."""
    count = highest - lowest + 1
    if count > _COVERED:
        drawn = np.asarray(rng.integers(lowest, highest, shape, endpoint=True))
        return _some(rng, drawn, (lowest, highest))
    size = math.prod(shape)
    rounds = [rng.permutation(count) for _ in range(-(-size // count))]
    return lowest + np.concatenate([*rounds, np.zeros(0, np.int64)])[:size].reshape(shape)


def _unlike(rng: np.random.Generator, lines: np.ndarray, count: int) -> np.ndarray:
    """The lines; others where a number below `count` is in one twice, if so many are unlike."""
    length = lines.shape[1]
    return np.stack(
        [
            rng.permutation(count)[:length] if len({*line}) < length <= count else line
            for line in lines.tolist()
        ]
    )


def _between(
    rng: np.random.Generator, element: Element, limits: Bounds, shape: tuple[int, ...]
) -> np.ndarray:
    """Numbers within limits."""
    lowest, highest = _ends(element, limits)
    if element.is_float:
        return np.asarray(rng.uniform(lowest, highest, shape))
    return np.asarray(rng.integers(int(lowest), int(highest), shape, endpoint=True))


def _ends(element: Element, limits: Bounds) -> Bounds:
    """The lowest and the highest number of a type within limits."""
    if element.is_float:
        return limits
    return math.ceil(limits[0]), math.floor(limits[1])


def _free(
    rng: np.random.Generator,
    element: Element,
    shape: tuple[int, ...],
    numbers: str,
    uses: InputUses,
) -> np.ndarray:
    """Numbers of an input that may be anything."""
    if element.name == "string":
        return _drawn(rng, _WORDS, shape)
    if element.kind == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if element.is_integer:
        usual = (-100 * element.is_signed, 100)
        is_wide = numbers == "ends" and uses.is_wide
        dtype = np.uint64 if element.bits == 64 and not element.is_signed else np.int64
        span = element.bounds if element.bits <= 8 or is_wide else usual
        whole = rng.integers(*span, shape, dtype, endpoint=True).astype(element.dtype)
        return _some(rng, np.asarray(whole), element.bounds) if is_wide else np.asarray(whole)
    # Images, scores and boxes are from 0 to 1.
    is_unit = numbers == "marked" and element.kind != "complex"
    drawn = np.asarray(rng.random(shape) if is_unit else rng.standard_normal(shape))
    if element.kind == "complex":
        drawn = drawn + 1j * rng.standard_normal(shape)
    elif numbers == "halves":
        drawn = np.rint(4 * drawn) / 2
    elif numbers == "special":
        drawn = _some(rng, drawn, uses.special)
    return drawn.astype(element.dtype)


def _some(rng: np.random.Generator, array: np.ndarray, numbers: Sequence[float]) -> np.ndarray:
    """The array with a few of each of these numbers in it."""
    places = rng.permutation(array.size)
    count = max(1, array.size // _SOME)
    flat = array.reshape(-1).copy()
    for place, number in enumerate(numbers):
        flat[places[place * count : (place + 1) * count]] = number
    return flat.reshape(array.shape)
