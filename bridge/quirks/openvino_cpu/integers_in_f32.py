"""Divisions, remainders, comparisons and Relu of integers. The CPU plugin computes them in f32,
which is not exact above 2^24.

Sums, products and maxima of integers are exact. Integers that follow from sizes, places and types
of few bits are smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.magnitude import NUMBERS, MayBeLarge
from bridge.quirks.quirk import COMPARISONS, Place, Quirk, rewriting
from bridge.quirks.undo import behind

OPERATORS = (*COMPARISONS, "Div", "Mod", "Relu", "ir::Mod")


def exactly(b: Builder, node: Node, place: Place) -> Result:
    """The operator by exact ones, if its numbers may be large. A comparison with a smaller number
    is exact in f32."""
    values = [value for value in node.inputs if value is not None]
    facts = place.facts(MayBeLarge)
    if not facts.of(values[0]):
        return None
    if node.op in COMPARISONS:
        return _compared(b, node.op, *values) if facts.of(values[1]) else None
    if node.op == "Relu":
        return b.max(values[0], 0)
    return None if _is_corrected(node, place) else _divided(b, node, *values)


def _is_of_integers(node: Node) -> bool:
    return all(v is None or v.element in NUMBERS for v in node.inputs)


def _compared(b: Builder, op: str, x: Value, y: Value) -> Value:
    """A comparison with 0: of the difference, or of the larger number less one of the two."""
    if op in ("Equal", "NotEqual"):
        return b.op(op, x - y, 0)
    other = x if op in ("Less", "GreaterOrEqual") else y
    return b.op("Equal" if "Equal" in op else "NotEqual", b.max(x, y) - other, 0)


def _divided(b: Builder, node: Node, x: Value, y: Value) -> Value:
    """The quotient or the remainder. Quotients of remainders correct the quotient, so that the
    remainder is smaller than the divisor. Then its sign decides."""
    quotient = b.op("Div", x, y)
    rest = x - quotient * y
    for _ in range(2):
        more = b.op("Div", rest, y)
        quotient, rest = quotient + more, rest - more * y
    sign = b.op("Sign", x)
    # The remainder has the sign of the dividend, or of the divisor if the quotient is rounded down.
    down = node.attributes["floor"] if node.op == "Div" else node.op == "Mod"
    owner = b.op("Sign", y) if down else sign
    wrong = b.max(0 - b.op("Sign", rest) * owner, 0)
    if node.op == "Div":
        return quotient - (wrong if down else wrong * sign * b.op("Sign", y))
    return rest + (wrong * y if down else wrong * sign * abs(y))


def _is_corrected(node: Node, place: Place) -> bool:
    """Whether a division is one of those that `_divided` writes: its remainder is divided again, or
    its sign is asked for."""
    x, y = node.inputs
    products = [n for n in place.uses.users(node.outputs[0]) if n.op == "Mul" and n.inputs[1] is y]
    rests = [n for p in products for n in place.uses.users(p.outputs[0]) if n.op == "Sub"]
    return any(
        user.op == "Sign" or (user.op == "Div" and user.inputs[1] is y)
        for rest in rests
        if rest.inputs[0] is x
        for user in place.uses.users(rest.outputs[0])
    )


def _undivided(b: Builder, node: Node) -> Iterator[Value]:
    """The division whose quotient, or remainder, is corrected last."""
    wrong = behind(node.inputs[1], "Max", most=8)
    rest = behind(wrong.inputs[0], "Sign", most=6) if wrong is not None else None
    value = rest.inputs[0] if rest is not None else None
    divisor: Value | None = None
    for _ in range(3):
        made = value.producer if value is not None else None
        if made is None or made.op != "Sub" or made.inputs[1] is None:
            return
        product = made.inputs[1].producer
        divisor = product.inputs[1] if product is not None and product.op == "Mul" else None
        value = made.inputs[0]
    if divisor is None:
        return
    if node.op == "Add":
        yield b.op("Mod", value, divisor)
        yield b.op("ir::Mod", value, divisor)
    else:
        yield b.op("Div", value, divisor)
        yield b.op("Div", value, divisor, floor=True)


def _uncompared(b: Builder, node: Node) -> Iterator[Value]:
    """The comparison of the operands of a difference."""
    made = node.inputs[0].producer if node.inputs[0] is not None else None
    if made is None or made.op != "Sub":
        return
    x, y = made.inputs
    larger = x.producer if x is not None else None
    if larger is not None and larger.op == "Max" and len(larger.inputs) == 2:
        ops = ("Less", "Greater") if node.op == "NotEqual" else ("LessOrEqual", "GreaterOrEqual")
        for op in ops:
            yield b.op(op, *larger.inputs)
    yield b.op(node.op, x, y)


QUIRK = Quirk(
    releases="2026.4",
    symptom="Divisions, remainders, comparisons and Relu of integers are computed in f32: 16777219 "
    "divided by 5 is 3355444.",
    fires="At these operators, if their integers may be 2^24 or more: if they follow from data "
    "rather than from sizes, places and types of few bits. At a comparison, both integers may be.",
    safe="A quotient plus the quotient of its remainder has a smaller remainder. If the remainder "
    "has the wrong sign, the quotient is too large by one. x is less than y if max(x, y) - x is "
    "not 0, and equal if x - y is 0, also if the difference overflows.",
    cost="about 20 operators for a division, and one or two for a comparison",
    run=rewriting(*OPERATORS, by=exactly, uses=True, where=_is_of_integers),
    guess={"Add": _undivided, "Sub": _undivided, "Equal": _uncompared, "NotEqual": _uncompared},
)
