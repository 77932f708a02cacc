"""FloorMod, for which the kernel of the GPU plugin calls fmod. The remainder has the sign of the
dividend."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_the_divisor(b: Builder, node: Node, place: Place) -> Result:
    """fmod, plus the divisor if the signs differ."""
    x, y = node.inputs
    if x is None or y is None or x.element is None or not x.element.is_signed:
        return None
    return _with_sign(b, b.op("ir::Mod", x, y), y)


def _with_sign(b: Builder, rest: Value, y: Value) -> Value:
    zero = b.like(0, rest)
    other = b.op("Xor", rest < zero, y < zero) & ~rest.equal(zero)
    return b.where(other, rest + y, rest)


def _remainders(b: Builder, node: Node) -> Iterator[Value]:
    """The remainder with the sign of the divisor, from fmod and the correction of its sign."""
    _, more, rest = node.inputs
    made = rest.producer if rest is not None else None
    added = more.producer if more is not None else None
    if made is None or made.op != "ir::Mod" or added is None or added.op != "Add":
        return
    x, y = made.inputs
    if added.inputs == [rest, y]:
        yield b.op("Mod", x, y, fmod=False)


QUIRK = Quirk(
    releases="2026.4",
    symptom="FloorMod of -7 and 2 is -1: it has the sign of the dividend.",
    fires="At a Mod of signed numbers whose result has the sign of the divisor.",
    safe="The remainder of a division that rounds down is fmod, or fmod plus the divisor.",
    cost="a Mod, two Less, an Equal, three logical operators, an Add and a Select",
    run=rewriting("Mod", by=of_the_divisor),
    guess={"Where": _remainders},
)
