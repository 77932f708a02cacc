"""Sizes that a model's operators demand of its inputs. If an input is multiplied by a matrix of
four rows, the input has four columns. If inputs are added, their sizes agree. Not all engines check
this: some read memory behind a tensor instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from bridge.check.inputs.uses import LIMITING
from bridge.errors import BridgeError
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model, Value
from bridge.neutral.inference import infer_graph, strictly
from bridge.neutral.inference.constraints import (
    Count,
    Double,
    Sum,
    contradiction,
    counts,
    doubles,
    equal_sizes,
    least_sizes,
    sizes_that_suit,
    sums,
)
from bridge.neutral.inference.indexes import index_range
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, Dim, Interval, TensorType, high, innermost, low, with_symbols

SizeBounds = int | Interval
"""A size, or a range of sizes."""

_SAME_NUMBERS = ("Cast", "Reshape")
"""Operators before which a value has the same numbers."""

_LONG = 4096  # the largest size that is chosen to reach a number of a model
_FEW = 8  # elements of a constant of which each may be a size
_NOTHING = 1e6  # the misfit of a dimension of size 0: all that is computed of it agrees
_UNKNOWN = 1e4  # the misfit of a dimension that is not known, or of a node that cannot run


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


def free_dimensions(model: Model) -> list[str]:
    """The possible keys of `Recipe.sizes`: the symbol, or `input.axis`, of each open dimension of
    an input. An input of unknown rank has `input.*`."""
    found: list[str] = []
    for value in model.graph.inputs:
        if innermost(value.type).shape is None:
            found.append(f"{value.name}.*")
        found += open_sizes(value)
    return list(dict.fromkeys(found))


def with_sizes(model: Model, sizes: Mapping[str, SizeBounds]) -> Model:
    """A copy of the model whose inputs have these sizes, by the keys of `Recipe.sizes`."""
    model = clone_model(model)
    for value in model.graph.inputs:
        if isinstance(value.type, TensorType) and value.shape is not None:
            dims = [
                dim
                if isinstance(dim, int)
                else sizes.get(dim if isinstance(dim, str) else key, dim)
                for dim, key in zip(value.shape, keys_of(value), strict=True)
            ]
            value.type = TensorType(value.element, tuple(dims))
    return model


def with_keys(model: Model) -> Model:
    """A copy of the model. Each open dimension of an input has its key as its symbol."""
    model = clone_model(model)
    for value in model.graph.inputs:
        value.type = value.declared = with_symbols(value.type, keys_of(value))
    infer_graph(model.graph)
    return model


@dataclass(frozen=True)
class Counts:
    """Sizes and inputs that count others. `sums` are sizes that are the sum of two others. If the
    sum has a size, the first of the two follows from it, unless it is fixed. `numbers` are inputs
    filled with a sum of sizes. `symbols` are those of sizes that are equal."""

    sums: dict[int | str, tuple[Dim, Dim, bool]] = field(default_factory=dict)
    numbers: dict[str, tuple[Dim, ...]] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Demands:
    """What operators demand of the sizes of inputs. `symbols` has the symbol of dimensions that
    some operator outside of bodies needs to be equal, or broadcasts, by their keys. `sizes` are the
    sizes that some operator demands, or the least, and none contradicts, by their keys in
    `Recipe.sizes`."""

    symbols: Mapping[str, str]
    sizes: Mapping[str, int]
    _inputs: Mapping[str, Value]
    _counts: tuple[Count | Double | Sum, ...]

    @classmethod
    def of(cls, model: Model) -> Demands:
        """The demands of a model, whose inputs get the shared symbols in place."""
        named = with_keys(model)
        outer = set(named.graph.nodes)
        equal: list[tuple[Dim, Dim]] = []
        suiting: list[tuple[Dim, Dim]] = []
        least: list[tuple[Dim, Dim]] = []
        counted: list[Count | Double | Sum] = []
        groups = _Groups()
        for node in named.graph.walk():
            pairs = [*equal_sizes(node)], [*sizes_that_suit(node)]
            equal += pairs[0]
            suiting += pairs[1]
            least += least_sizes(node)
            if node in outer:
                counted += [*doubles(node), *sums(node), *counts(node)]
                groups.join(*pairs[0], *pairs[1])
        tokens = _token_inputs(model)
        for value in tokens[1:]:
            groups.join(*zip(keys_of(tokens[0]), keys_of(value), strict=True))
        members = groups.members()
        for value in model.graph.inputs:
            value.type = with_symbols(value.type, [members.get(key) for key in keys_of(value)])
        # Where a size suits, 1 would suit as well.
        sizes = groups.sizes(least) | groups.sizes(suiting) | groups.sizes(equal)
        one = {key: min(some) for key, some in sizes.items() if len(some) == 1}
        inputs = {value.name: value for value in named.graph.inputs}
        return cls(members, one, inputs, tuple(counted))

    def counts(self, given: Set[str]) -> Counts:
        """The counts of the model's inputs. `given` are the keys of sizes and the names of inputs
        that a user chose."""
        found = Counts(symbols=self.symbols)

        def shared(dim: Dim) -> Dim:
            return self.symbols.get(dim, dim) if isinstance(dim, str) else dim

        for one in self._counts:
            if isinstance(one, Double | Sum):
                total = shared(one.whole)
                parts = (one.one, one.other) if isinstance(one, Sum) else (one.half, one.half)
                if isinstance(total, str) and ANY not in parts:
                    found.sums[total] = shared(parts[0]), shared(parts[1]), True
                continue
            if one.counted is None:
                continue
            part, other = map(shared, one.sizes)
            (whole, *_) = known_of(one.counted).parts or (None,)
            if isinstance(whole, int | str) and not one.more:
                whole = whole if isinstance(whole, int) else self.symbols.get(whole, whole)
                if not {whole, part}.issubset(given):
                    found.sums[whole] = part, other, isinstance(part, int) or part in given
            source = one.counted.behind(*_SAME_NUMBERS)
            mask = source.behind(*_SAME_NUMBERS, "Sub", "ReduceSum")
            for value, number in ((source, (part, other, one.more)), (mask, (1,))):
                if self._inputs.get(value.name) is value and value.name not in given:
                    found.numbers.setdefault(value.name, number)
        return found

    def shared(self, sizes: Mapping[str, SizeBounds]) -> dict[str, SizeBounds]:
        """The sizes, and each of them for all dimensions that have its symbol."""
        named = {self.symbols[key]: size for key, size in sizes.items() if key in self.symbols}
        every = {k: named[symbol] for k, symbol in self.symbols.items() if symbol in named}
        return {**named, **every, **sizes}


class _Groups:
    """Symbols that stand for one size."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}

    def _found(self, key: str) -> str:
        while key in self._of:
            key = self._of[key]
        return key

    def join(self, *pairs: tuple[Dim, Dim]) -> None:
        """Makes the symbols of each pair one."""
        for a, b in pairs:
            if isinstance(a, str) and isinstance(b, str) and self._found(a) != self._found(b):
                self._of[self._found(b)] = self._found(a)

    def members(self) -> dict[str, str]:
        """Each symbol that stands for the size of others, with the first of them."""
        return {key: self._found(key) for key in (*self._of, *self._of.values())}

    def sizes(self, pairs: Iterable[tuple[Dim, Dim]]) -> dict[str, set[int]]:
        """The known sizes that symbols are paired with."""
        found: dict[str, set[int]] = {}
        for a, b in pairs:
            for symbol, size in ((a, b), (b, a)):
                if isinstance(symbol, str) and isinstance(size, int):
                    found.setdefault(self._found(symbol), set()).add(size)
        return found


def misfit(model: Model, sizes: Mapping[str, int]) -> float:
    """How much the sizes contradict each other that operators compute from these sizes of inputs, 0
    for not at all. An image is cut into patches, and a table of fixed length is added to these: so
    the image has one size, which no operator demands of the input itself."""
    sized = with_sizes(model, sizes)
    try:
        with strictly(False):
            infer_graph(sized.graph)
    except BridgeError:
        return float("inf")
    found = 0.0
    for node in sized.graph.nodes:
        if node.op == "Constant":
            continue
        pairs = [*equal_sizes(node), *sizes_that_suit(node)]
        apart = [abs(a - b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
        found += sum(apart) or _UNKNOWN * bool(contradiction(node))
        dims = [dim for v in node.outputs for dim in ((ANY,) if v.shape is None else v.shape)]
        found += _UNKNOWN * sum(not isinstance(dim, int) for dim in dims)
        found += _NOTHING * sum(isinstance(dim, int) and dim < 1 for dim in dims)
    return found


def size_limits(*models: Model) -> list[int]:
    """Integers that models compare with, cut at, or have so many rows in a table as, and so maybe
    sizes. Those of one model alone come first, and large ones before small ones."""
    found = [{n for n in map(abs, _cuts(model)) if 1 < n <= _LONG} for model in models]
    everywhere = set.intersection(*found) if len(found) > 1 else set()
    return sorted(set.union(*found), key=lambda number: (number in everywhere, -number))


def _cuts(model: Model) -> Iterator[int]:
    """The integers that a model compares with, those that it cuts open axes at, and the sizes of
    its tables."""
    for node in model.graph.walk():
        data = node.input(0)
        if data is not None and data.constant is not None and (rows := index_range(node, 1)):
            yield from (size for size in rows.sizes if isinstance(size, int))
        slices = node.op in ("Slice", "StridedSlice")
        shape = (data.shape if slices and data is not None else None) or ()
        axes = known_of(node.input(3)).ints if node.op == "Slice" and node.input(3) else None
        limits = node.inputs[1:3] if slices else node.inputs if node.op in LIMITING else ()
        for value in limits:
            tensor = None if value is None else value.constant
            if tensor is None or not tensor.element.is_integer or tensor.size > _FEW:
                continue
            for place, number in enumerate(tensor.array().reshape(-1)):
                axis = axes[place] if axes else place
                if not (-len(shape) <= axis < len(shape) and isinstance(shape[axis], int)):
                    yield int(number)


def _token_inputs(model: Model) -> list[Value]:
    """The token ids of a language model, and inputs of the same kind, for example a mask. All are
    matrices of integers with the same batch and length. Empty if no input indexes a constant
    table."""
    fixed: set[Value] = set()  # depend on no input: weights that are stored in few bits, say
    sources: set[Value] = set()
    for node in model.graph.nodes:
        given = [value for value in node.inputs if value is not None]
        if node.op == "Gather" and len(given) > 1 and given[0] in fixed:
            sources.add(given[1].behind(*_SAME_NUMBERS))
        if node.op == "Constant" or (given and fixed.issuperset(given)):
            fixed.update(node.outputs)
    if sources.isdisjoint(model.graph.inputs):
        return []
    return [
        value
        for value in model.graph.inputs
        if value.shape == (ANY, ANY) and value.element is not None and value.element.is_integer
    ]


def shared_sizes(first: Model, other: Model) -> dict[str, int | Interval]:
    """The sizes and ranges that the inputs of `other` give to open dimensions of `first`, by their
    keys in `Recipe.sizes`."""
    sizes: dict[str, int | Interval] = {}
    for value, twin in same_inputs(first, other).items():
        own, its = innermost(value.type).shape, innermost(twin.type).shape
        if its is None or (own is not None and len(own) != len(its)):
            continue
        for axis, dim in enumerate(its):
            before: Dim = own[axis] if own is not None else Interval(0, None)
            narrows = (low(dim), high(dim)) != (low(before), high(before))
            if narrows and not isinstance(before, int) and not isinstance(dim, str):
                key = before if isinstance(before, str) else f"{value.name}.{axis}"
                sizes.setdefault(key, dim)
    return sizes


def same_inputs(first: Model, other: Model) -> Mapping[Value, Value]:
    """The inputs of both, by name, or else by position if both have as many."""
    names = {name: value for value in other.graph.inputs for name in value.names}
    found = {
        value: next((names[name] for name in value.names if name in names), None)
        for value in first.graph.inputs
    }
    if None in found.values() and len(found) == len(other.graph.inputs):
        return dict(zip(first.graph.inputs, other.graph.inputs, strict=True))
    return {value: twin for value, twin in found.items() if twin is not None}
