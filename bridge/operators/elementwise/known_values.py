"""Known content of element-by-element arithmetic: shape arithmetic on numbers and symbols."""

from __future__ import annotations

from collections.abc import Callable

from bridge.neutral.types import BOOL, Element, SharedSymbol
from bridge.operators import Node, Value

Number = int | str | None
"""An element of a value's content."""


def numbers_of(value: Value | None) -> tuple[Number, ...] | None:
    """What is known of the elements of integers or bools."""
    if value is None or value.element is None:
        return None
    return value.known_value if value.element.kind in ("int", "uint", "bool") else None


def elementwise(
    node: Node, function: Callable[..., Number], *values: Value | None
) -> tuple[Number, ...] | None:
    """`function` on each element of vectors and scalars."""
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
    """Whether a type holds all the numbers, and is wide enough for sizes of axes."""
    if element is BOOL:
        return all(x in (0, 1, None) for x in content)
    if element is None or not element.is_integer:
        return False
    low, high = element.bounds
    return all(
        low <= x <= high if isinstance(x, int) else x is None or element.bits >= 32 for x in content
    )


def on_integers(function: Callable[[int, int], int | None]) -> Callable[..., Number]:
    """The function for two known numbers, None for others."""
    return lambda a, b: function(a, b) if isinstance(a, int) and isinstance(b, int) else None


def add(a: Number, b: Number) -> Number:
    """The sum, as far as it is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else None


def _sub(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if b == 0:
        return a
    return 0 if a is not None and a == b and not isinstance(a, SharedSymbol) else None


def mul(a: Number, b: Number) -> Number:
    """The product, as far as it is known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    return b if a == 1 else a if b == 1 else None


def maximum(a: Number, b: Number) -> Number:
    """The greater one, as far as it is known: a symbol is at least 0."""
    least = minimum(a, b)
    if least is None:
        return None
    return b if least == a else a


def minimum(a: Number, b: Number) -> Number:
    """The lesser one, as far as it is known: a symbol is at least 0."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    if a == b:
        return a
    low, other = (a, b) if isinstance(a, int) else (b, a)
    return low if isinstance(low, int) and low <= 0 and isinstance(other, str) else None


ARITHMETIC = {
    "Add": add,
    "Sub": _sub,
    "Mul": mul,
    "And": on_integers(lambda a, b: a & b),
    "Or": on_integers(lambda a, b: a | b),
    "Xor": on_integers(lambda a, b: a ^ b),
    "Pow": on_integers(lambda a, b: a**b if 0 <= b < 64 else None),
}
