"""Known content of elementwise arithmetic: shape arithmetic on numbers and symbols."""

import operator
from collections.abc import Callable

from bridge.neutral.inference.known import between, bounds
from bridge.neutral.types import BOOL, Between, Element, Part, SharedSymbol
from bridge.operators import Node, Value

Number = Part
"""An element of a value's content."""


def numbers_of(value: Value | None) -> tuple[Number, ...] | None:
    """The known elements of integers or bools, or None."""
    if value is None or value.element is None:
        return None
    return value.known_value if value.element.kind in ("int", "uint", "bool") else None


def elementwise(
    node: Node, function: Callable[..., Number], *values: Value | None
) -> tuple[Number, ...] | None:
    """Applies `function` to each element of vectors and scalars."""
    contents = []
    for value in values:
        content = numbers_of(value)
        if content is None or value is None or value.rank is None or value.rank > 1:
            return None
        contents.append(content)
    length = 1
    for content in contents:
        if len(content) != 1:
            if length not in (1, len(content)):
                return None
            length = len(content)
    wide = [content * length if len(content) == 1 else content for content in contents]
    result = tuple(function(*items) for items in zip(*wide, strict=True))
    return result if holds(node.outputs[0].element, result) else None


def holds(element: Element | None, content: tuple[Number, ...]) -> bool:
    """Whether a type can hold all the numbers, and is wide enough for sizes of axes."""
    if element is BOOL:
        return all(x in (0, 1, None) for x in content)
    if element is None or not element.is_integer:
        return False
    low, high = element.bounds
    return all(
        low <= x <= high if isinstance(x, int) else x is None or element.bits >= 32 for x in content
    )


def on_integers(function: Callable[[int, int], int | None]) -> Callable[..., Number]:
    """Makes a function of two known numbers return None for other inputs."""
    return lambda a, b: function(a, b) if isinstance(a, int) and isinstance(b, int) else None


def add(a: Number, b: Number) -> Number:
    """The known part of the sum."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else _of_bounds(a, b, operator.add)


def _of_bounds(a: Number, b: Number, function: Callable[[int, int], int]) -> Number:
    """The known part of a function of two numbers that grows with both."""
    ends = zip(bounds(a), bounds(b), strict=True)
    return between(*(None if x is None or y is None else function(x, y) for x, y in ends))


def _sub(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if b == 0:
        return a
    if a is not None and a == b and not isinstance(a, SharedSymbol):
        return 0
    low, high = bounds(b)
    negative = Between(None if high is None else -high, None if low is None else -low)
    return _of_bounds(a, negative, operator.add)


def mul(a: Number, b: Number) -> Number:
    """The known part of the product."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    if a == 1 or b == 1:
        return b if a == 1 else a
    lows = (bounds(a)[0], bounds(b)[0])
    is_negative = any(low is None or low < 0 for low in lows)
    return None if is_negative else _of_bounds(a, b, operator.mul)


def maximum(a: Number, b: Number) -> Number:
    """The known part of the maximum; a symbol is at least 0."""
    least = minimum(a, b)
    if least is None or isinstance(least, Between):
        return _of_bounds(a, b, max)
    return b if least == a else a


def minimum(a: Number, b: Number) -> Number:
    """The known part of the minimum; a symbol is at least 0."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    if a == b:
        return a
    low, other = (a, b) if isinstance(a, int) else (b, a)
    if isinstance(low, int) and low <= 0 and isinstance(other, str):
        return low
    return _of_bounds(a, b, min)


ARITHMETIC = {
    "Add": add,
    "Sub": _sub,
    "Mul": mul,
    "And": on_integers(lambda a, b: a & b),
    "Or": on_integers(lambda a, b: a | b),
    "Xor": on_integers(lambda a, b: a ^ b),
    "Pow": on_integers(lambda a, b: a**b if 0 <= b < 64 else None),
}
