"""Sizes that a model's operators demand of its inputs. If an input is multiplied by a matrix of
four rows, the input has four columns. If inputs are added, their sizes agree. Not all engines check
this: some read memory behind a tensor instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from bridge.check.inputs import Counts, keys_of
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.inference import infer_graph
from bridge.neutral.inference.constraints import counts, doubles, equal_sizes, sizes_that_suit
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import ANY, Dim, Interval, with_symbols

SizeBounds = int | Interval

_SAME_NUMBERS = ("Cast", "Reshape")
"""Operators before which a value has the same numbers."""


def demanded(model: Model) -> dict[str, int]:
    """The sizes of open dimensions of inputs that some operator demands and none contradicts, by
    their keys in `Recipe.sizes`."""
    model = with_keys(model)
    asked: dict[str, set[int]] = {}
    suits: dict[str, set[int]] = {}  # 1 would suit as well
    for sizes, pairs in ((asked, equal_sizes), (suits, sizes_that_suit)):
        for a, b in _pairs(model.graph.walk(), pairs):
            for symbol, size in ((a, b), (b, a)):
                if isinstance(symbol, str) and isinstance(size, int):
                    sizes.setdefault(symbol, set()).add(size)
    return {key: min(sizes) for key, sizes in (suits | asked).items() if len(sizes) == 1}


def share_symbols(model: Model) -> dict[str, str]:
    """Gives open dimensions of inputs one symbol, in place, if an operator outside of bodies needs
    them to be equal, or broadcasts them. The answer has the symbol by each dimension's key."""
    named = with_keys(model)
    symbols: dict[str, str] = {}

    def found(key: str) -> str:
        while key in symbols:
            key = symbols[key]
        return key

    for pairs in (equal_sizes, sizes_that_suit):
        for a, b in _pairs(named.graph.nodes, pairs):
            if isinstance(a, str) and isinstance(b, str) and found(a) != found(b):
                symbols[found(b)] = found(a)
    tokens = _token_inputs(model)
    for value in tokens[1:]:
        for mine, its in zip(keys_of(tokens[0]), keys_of(value), strict=True):
            if found(mine) != found(its):
                symbols[found(its)] = found(mine)
    members = {key: found(key) for key in (*symbols, *symbols.values())}
    for value in model.graph.inputs:
        keys = [members.get(key) for key in keys_of(value)]
        value.type = with_symbols(value.type, keys)
    return members


def counts_of(model: Model, given: Set[str]) -> Counts:
    """The counts of the model's inputs. `given` are the keys of sizes and the names of inputs that
    a user chose."""
    named = with_keys(model)
    found = Counts()
    for node in named.graph.nodes:
        for double in doubles(node):
            if isinstance(double.whole, str):
                found.sums[double.whole] = double.half, double.half, True
        for count in counts(node):
            if count.counted is None:
                continue
            part, other = count.sizes
            (whole, *_) = known_of(count.counted).parts or (None,)
            if not isinstance(whole, int | str):
                whole = None
            if whole is not None and not count.more and not {whole, part}.issubset(given):
                found.sums[whole] = part, other, isinstance(part, int) or part in given
            source = count.counted.behind(*_SAME_NUMBERS)
            mask = source.behind(*_SAME_NUMBERS, "Sub", "ReduceSum")
            for value, number in ((source, (part, other, count.more)), (mask, (1,))):
                if value in named.graph.inputs and value.name not in given:
                    found.numbers.setdefault(value.name, number)
    return found


def _token_inputs(model: Model) -> list[Value]:
    """The token ids of a language model, and inputs of the same kind, for example a mask. All are
    matrices of integers with the same batch and length. Empty if no input indexes a constant
    table."""
    taken = (node for node in model.graph.nodes if node.op == "Gather" and len(node.inputs) > 1)
    fixed = _fixed(model)
    indices = (node.inputs[1] for node in taken if node.inputs[0] in fixed)
    sources = (value.behind(*_SAME_NUMBERS) for value in indices if value is not None)
    if not set(model.graph.inputs).intersection(sources):
        return []
    return [
        value
        for value in model.graph.inputs
        if value.shape == (ANY, ANY) and value.element is not None and value.element.is_integer
    ]


def _fixed(model: Model) -> set[Value]:
    """The values that depend on no input: constants, and values computed from constants alone, for
    example weights that are stored in few bits."""
    found: set[Value] = set()
    for node in model.graph.nodes:
        given = {value for value in node.inputs if value is not None}
        if node.op == "Constant" or (given and given <= found):
            found.update(node.outputs)
    return found


def shared(symbols: Mapping[str, str], sizes: Mapping[str, SizeBounds]) -> dict[str, SizeBounds]:
    """The sizes, and each of them for all dimensions that have its symbol."""
    named = {symbols[key]: size for key, size in sizes.items() if key in symbols}
    return {**named, **{k: named[s] for k, s in symbols.items() if s in named}, **sizes}


def with_keys(model: Model) -> Model:
    """A copy of the model. Each open dimension of an input has its key as its symbol."""
    model = clone_model(model)
    for value in model.graph.inputs:
        value.type = value.declared = with_symbols(value.type, keys_of(value))
    infer_graph(model.graph)
    return model


def _pairs(
    nodes: Iterable[Node], pairs: Callable[[Node], Iterator[tuple[Dim, Dim]]]
) -> Iterator[tuple[Dim, Dim]]:
    for node in nodes:
        yield from pairs(node)
