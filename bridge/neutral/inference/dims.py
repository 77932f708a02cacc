"""Helpers of shape inference: axes, and dimensions computed from dimensions."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import as_part, known_of
from bridge.neutral.types import ANY, Dim, Interval, KnownValue, Shape, high, interval, low

_naming: ContextVar[bool] = ContextVar("naming", default=False)


@contextmanager
def naming_results() -> Iterator[None]:
    """Inside the block, results of symbols are symbols too: `past + seq`, `2*batch`, `seq/4`."""
    token = _naming.set(True)
    try:
        yield
    finally:
        _naming.reset(token)


def _symbols(parts: Sequence[Dim]) -> Counter[str] | None:
    """How often each symbol is a part; None if results get no names, or a symbol is no name."""
    if not _naming.get() or any(isinstance(dim, Interval) for dim in parts):
        return None
    symbols = Counter(dim for dim in parts if isinstance(dim, str))
    return symbols if all(map(str.isidentifier, symbols)) else None


def rearranged(
    content: KnownValue, shape: tuple[int, ...], move: Callable[[np.ndarray], np.ndarray]
) -> KnownValue:
    """The content of a value of this shape after `move`, which is done to an array of places."""
    places = move(np.arange(len(content)).reshape(shape))
    return tuple(content[place] for place in places.reshape(-1))


def known_axes(value: Value | None, rank: int) -> tuple[int, ...] | None:
    """The axes that a value holds, none negative; None if they are not known."""
    axes = known_of(value).ints
    return None if axes is None else tuple(axis % rank if rank else 0 for axis in axes)


def contents(shape: Shape) -> KnownValue | None:
    """A shape as the content of a vector: of an interval only the bounds are known."""
    return None if shape is None else tuple(map(as_part, shape))


def dim_sum(dims: Iterable[Dim]) -> Dim:
    """The sum of dimensions."""
    parts = [d for d in dims if d != 0]
    if len(parts) == 1:
        return parts[0]
    if symbols := _symbols(parts):
        terms = sorted(name if count == 1 else f"{count}*{name}" for name, count in symbols.items())
        number = sum(dim for dim in parts if isinstance(dim, int))
        rest = f" {'+' if number > 0 else '-'} {abs(number)}" if number else ""
        return " + ".join(terms) + rest
    lows, highs = [low(d) for d in parts], [high(d) for d in parts]
    return interval(sum(lows), None if None in highs else sum(h for h in highs if h is not None))


def dim_product(dims: Sequence[Dim]) -> Dim:
    """The product of dimensions."""
    if any(d == 0 for d in dims):
        return 0
    parts = [d for d in dims if d != 1]
    if not parts:
        return 1
    if len(parts) == 1:
        return parts[0]
    if symbols := _symbols(parts):
        number = math.prod(dim for dim in parts if isinstance(dim, int))
        return "*".join([str(number)] * (number != 1) + sorted(symbols.elements()))
    highs = [high(d) for d in parts]
    most = None if None in highs else math.prod(h for h in highs if h is not None)
    return interval(math.prod(map(low, parts)), most)


def at_most(dim: Dim) -> Dim:
    """A size that data decide, no greater than another."""
    return interval(0, high(dim))


def dim_quotient(dims: Sequence[Dim], divisors: Sequence[Dim]) -> Dim:
    """The product of `dims` divided by the product of `divisors`, equal symbols cancelled."""
    if 0 in dims and all(isinstance(d, int) and d for d in divisors):
        return 0
    left = Counter(d for d in dims if isinstance(d, str))
    right = Counter(d for d in divisors if isinstance(d, str))
    if any(not isinstance(d, int | str) for d in (*dims, *divisors)) or right - left:
        return _quotient_of_bounds(dims, divisors)
    rest = list((left - right).elements())
    number = math.prod(d for d in dims if isinstance(d, int))
    divisor = math.prod(d for d in divisors if isinstance(d, int))
    if divisor == 0:
        return 0
    if not rest:
        return number // divisor if number % divisor == 0 else ANY
    if len(rest) == 1 and number == divisor:
        return rest[0]
    if not number or not _symbols(rest):
        return ANY
    shared = math.gcd(number, divisor)
    product = dim_product([number // shared, *rest])
    return product if divisor == shared else f"{product}/{divisor // shared}"


def _quotient_of_bounds(dims: Sequence[Dim], divisors: Sequence[Dim]) -> Dim:
    """The bounds of `dims` divided by known sizes."""
    product, divisor = dim_product(dims), dim_product(divisors)
    if not isinstance(divisor, int) or divisor < 1:
        return ANY
    most = high(product)
    return interval(-(-low(product) // divisor), None if most is None else most // divisor)


def rank_sum(*ranks: int | None) -> int | None:
    """The sum of ranks, None if one is not known."""
    return None if None in ranks else sum(r for r in ranks if r is not None)


def axis_of(node: Node, rank: int, name: str = "axis") -> int:
    """The node's axis attribute, not negative."""
    axis: int = node.attributes[name]
    return axis + rank if axis < 0 else axis


def with_dim(shape: Sequence[Dim], axis: int, dim: Dim) -> tuple[Dim, ...]:
    """The shape with another dimension at `axis`."""
    return (*shape[:axis], dim, *shape[axis + 1 :])
