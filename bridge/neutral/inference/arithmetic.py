"""Arithmetic on the content of shape-like values: short integer vectors and scalars.

A symbol stands for the size of an axis: it is not negative.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.neutral.builder import integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference import first, knows
from bridge.neutral.types import BOOL, Element

Number = int | str | None
"""An element of a value's content."""


def _content(value: Value | None) -> tuple[Number, ...] | None:
    if value is None or value.element is None:
        return None
    return value.content if value.element.kind in ("int", "uint", "bool") else None


def _elementwise(
    node: Node, function: Callable[..., Number], *values: Value | None
) -> tuple[Number, ...] | None:
    """`function` on each element of vectors and scalars."""
    contents = []
    for value in values:
        content = _content(value)
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
    return result if _holds(node.outputs[0].element, result) else None


def _holds(element: Element | None, content: tuple[Number, ...]) -> bool:
    """Whether a type holds all the numbers, and is wide enough for sizes of axes."""
    if element is BOOL:
        return all(x in (0, 1, None) for x in content)
    if element is None or not element.is_integer:
        return False
    low = -(1 << (element.bits - 1)) if element.is_signed else 0
    high = (1 << (element.bits - 1 if element.is_signed else element.bits)) - 1
    return all(
        low <= x <= high if isinstance(x, int) else x is None or element.bits >= 32
        for x in content
    )  # fmt: skip


def _on_integers(function: Callable[[int, int], int | None]) -> Callable[..., Number]:
    return lambda a, b: function(a, b) if isinstance(a, int) and isinstance(b, int) else None


def _add(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return b if a == 0 else a if b == 0 else None


def _sub(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if b == 0:
        return a
    return 0 if a is not None and a == b else None


def _mul(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    return b if a == 1 else a if b == 1 else None


def quotient(a: int, b: int) -> int | None:
    """`a / b` rounded towards zero; None where b is 0."""
    if b == 0:
        return None
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _div(floor: bool) -> Callable[..., Number]:
    def divide(a: Number, b: Number) -> Number:
        if b == 1:
            return a
        if isinstance(a, int) and isinstance(b, int):
            return quotient(a, b) if not floor else a // b if b else None
        return None

    return divide


def _mod(fmod: bool) -> Callable[..., Number]:
    def remainder(a: int, b: int) -> int | None:
        if b == 0:
            return None
        return a - b * (quotient(a, b) or 0) if fmod else a % b

    return _on_integers(remainder)


def _max(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    if a == b:
        return a
    low, other = (a, b) if isinstance(a, int) else (b, a)
    return other if isinstance(low, int) and low <= 0 and isinstance(other, str) else None


def _min(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    if a == b:
        return a
    low, other = (a, b) if isinstance(a, int) else (b, a)
    return low if isinstance(low, int) and low <= 0 and isinstance(other, str) else None


def _compare(
    function: Callable[[int, int], bool], same: bool, below: bool, above: bool
) -> Callable[..., Number]:
    """A comparison; `same` is its result for equal symbols, `below` that of a negative number
    with a symbol, `above` the other way around."""

    def compare(a: Number, b: Number) -> Number:
        if a is None or b is None:
            return None
        if isinstance(a, int) and isinstance(b, int):
            return int(function(a, b))
        if a == b:
            return int(same)
        if isinstance(a, int) and a < 0:
            return int(below)
        return int(above) if isinstance(b, int) and b < 0 else None

    return compare


_COMPARISONS = {
    "Equal": _compare(lambda a, b: a == b, True, False, False),
    "NotEqual": _compare(lambda a, b: a != b, False, True, True),
    "Greater": _compare(lambda a, b: a > b, False, False, True),
    "GreaterOrEqual": _compare(lambda a, b: a >= b, True, False, True),
    "Less": _compare(lambda a, b: a < b, False, True, False),
    "LessOrEqual": _compare(lambda a, b: a <= b, True, True, False),
}


@knows(*_COMPARISONS)
def content_of_comparison(node: Node) -> tuple[Number, ...] | None:
    return _elementwise(node, _COMPARISONS[node.op], *node.inputs)


_ARITHMETIC = {
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "And": _on_integers(lambda a, b: a & b),
    "Or": _on_integers(lambda a, b: a | b),
    "Xor": _on_integers(lambda a, b: a ^ b),
    "Pow": _on_integers(lambda a, b: a**b if 0 <= b < 64 else None),
}


@knows(*_ARITHMETIC)
def content_of_arithmetic(node: Node) -> tuple[Number, ...] | None:
    return _elementwise(node, _ARITHMETIC[node.op], *node.inputs)


@knows("Div")
def content_of_div(node: Node) -> tuple[Number, ...] | None:
    return _elementwise(node, _div(node.attributes["floor"]), *node.inputs)


@knows("Mod")
def content_of_mod(node: Node) -> tuple[Number, ...] | None:
    return _elementwise(node, _mod(node.attributes["fmod"]), *node.inputs)


@knows("ir::Mod")
def content_of_ir_mod(node: Node) -> tuple[Number, ...] | None:
    return _elementwise(node, _mod(True), *node.inputs)


@knows("Max", "Min")
def content_of_extremum(node: Node) -> tuple[Number, ...] | None:
    function = _max if node.op == "Max" else _min

    def fold(*items: Number) -> Number:
        result = items[0]
        for item in items[1:]:
            result = function(result, item)
        return result

    return _elementwise(node, fold, *node.inputs)


_UNARY: dict[str, Callable[[Number], Number]] = {
    "Neg": lambda a: -a if isinstance(a, int) else None,
    "Abs": lambda a: abs(a) if isinstance(a, int) else a,
    "Relu": lambda a: max(a, 0) if isinstance(a, int) else a,
    "Not": lambda a: 1 - a if isinstance(a, int) else None,
    "Sign": lambda a: (a > 0) - (a < 0) if isinstance(a, int) else None,
    "Floor": lambda a: a,
    "Ceil": lambda a: a,
    "Round": lambda a: a,
}


@knows(*_UNARY)
def content_of_unary(node: Node) -> tuple[Number, ...] | None:
    content = _content(node.inputs[0])
    if content is None:
        return None
    result = tuple(map(_UNARY[node.op], content))
    return result if _holds(node.outputs[0].element, result) else None


@knows("Cast")
def content_of_cast(node: Node) -> tuple[Number, ...] | None:
    content, to = _content(node.inputs[0]), node.attributes["to"]
    if content is None:
        return None
    if to is BOOL:
        return tuple(int(x != 0) if isinstance(x, int) else None for x in content)
    return content if _holds(to, content) else None


@knows("CastLike")
def content_of_cast_like(node: Node) -> tuple[Number, ...] | None:
    content, to = _content(node.inputs[0]), first(node, 1).element
    return content if content is not None and _holds(to, content) else None


@knows("Where")
def content_of_where(node: Node) -> tuple[Number, ...] | None:
    def pick(condition: Number, x: Number, y: Number) -> Number:
        if isinstance(condition, int):
            return x if condition else y
        return x if x == y else None

    return _elementwise(node, pick, *node.inputs)


@knows("Clip")
def content_of_clip(node: Node) -> tuple[Number, ...] | None:
    low, high = node.input(1), node.input(2)
    content = _content(node.inputs[0])
    if content is not None and low is not None:
        lows = _content(low)
        content = None if lows is None else tuple(_max(x, lows[0]) for x in content)
    if content is not None and high is not None:
        highs = _content(high)
        content = None if highs is None else tuple(_min(x, highs[0]) for x in content)
    return content


def _sum(content: tuple[Number, ...]) -> Number:
    total: Number = 0
    for item in content:
        total = _add(total, item)
    return total


def _prod(content: tuple[Number, ...]) -> Number:
    total: Number = 1
    for item in content:
        total = _mul(total, item)
    return total


def _extreme(function: Callable[[Number, Number], Number]) -> Callable[..., Number]:
    def reduce(content: tuple[Number, ...]) -> Number:
        result = content[0]
        for item in content[1:]:
            result = function(result, item)
        return result

    return reduce


_REDUCTIONS: dict[str, Callable[[tuple[Number, ...]], Number]] = {
    "ReduceSum": _sum,
    "ReduceProd": _prod,
    "ReduceMax": _extreme(_max),
    "ReduceMin": _extreme(_min),
    "ReduceLogicalAnd": _extreme(_ARITHMETIC["And"]),
    "ReduceLogicalOr": _extreme(_ARITHMETIC["Or"]),
}


@knows(*_REDUCTIONS)
def content_of_reduction(node: Node) -> tuple[Number, ...] | None:
    data = node.inputs[0]
    content = _content(data)
    if content is None or data is None or data.rank is None or data.rank > 1:
        return None
    axes = node.input(1)
    if axes is None or integers(axes) == ():
        if node.attributes["noop_with_empty_axes"]:
            return content
    elif integers(axes) is None:
        return None
    result = (_REDUCTIONS[node.op](content),)
    return result if _holds(node.outputs[0].element, result) else None


@knows("CumSum")
def content_of_cum_sum(node: Node) -> tuple[Number, ...] | None:
    content = _content(node.inputs[0])
    if content is None or first(node).rank != 1:
        return None
    items = content[::-1] if node.attributes["reverse"] else content
    total: Number = 0
    result = []
    for item in items:
        before, total = total, _add(total, item)
        result.append(before if node.attributes["exclusive"] else total)
    total_content = tuple(result[::-1] if node.attributes["reverse"] else result)
    return total_content if _holds(node.outputs[0].element, total_content) else None
