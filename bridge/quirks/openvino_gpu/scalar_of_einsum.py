"""Einsum that sums over all axes. The GPU plugin gives a wrong number."""

from __future__ import annotations

import string
from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def with_axis(b: Builder, node: Node, place: Place) -> Result:
    """The same with an axis of size 1 in the first operand and in the result."""
    equation = node.attributes["equation"].replace(" ", "")
    first = node.inputs[0]
    if node.outputs[0].rank != 0 or first is None or "." in equation:
        return None
    axis = next(letter for letter in string.ascii_letters if letter not in equation)
    operands = [b.unsqueeze(first, 0), *node.inputs[1:]]
    longer = f"{axis}{equation.partition('->')[0]}->{axis}"
    summed = b.node("Einsum", operands, 1, {"equation": longer}, extras=node.extras)
    return b.squeeze(summed.outputs[0], 0)


def _scalars(b: Builder, node: Node) -> Iterator[Value]:
    """Einsum without the axis in front."""
    made = node.inputs[0].producer if node.inputs[0] is not None else None
    if made is None or made.op != "Einsum" or made.inputs[0] is None:
        return
    terms, _, result = made.attributes["equation"].partition("->")
    wider = made.inputs[0].producer
    if len(result) == 1 and terms.startswith(result) and wider and wider.op == "Unsqueeze":
        operands = [wider.inputs[0], *made.inputs[1:]]
        yield b.op("Einsum", *operands, equation=terms[1:])


QUIRK = Quirk(
    releases="2026.4",
    symptom='Einsum "i,i" gives a number that is not the sum of products.',
    fires="At an Einsum whose result is a scalar.",
    safe="An axis of size 1 has one element, and is removed again.",
    cost="an Unsqueeze and a Squeeze",
    run=rewriting("Einsum", by=with_axis),
    guess={"Squeeze": _scalars},
)
