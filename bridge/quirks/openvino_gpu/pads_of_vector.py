"""Pad of a tensor with one axis by computed pads. The kernel of the GPU plugin reads a pad of a
second axis behind them."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.known import is_known
from bridge.quirks.quirk import Place, Quirk, rewriting


def with_axis(b: Builder, node: Node, place: Place) -> Result:
    """The Pad of a matrix with one column, which gets no pads along its second axis."""
    data, begin, end, *value = node.inputs
    if data is None or begin is None or end is None or data.rank != 1 or is_known(begin, place):
        return None
    none = b.constant([0], begin.element)
    pads = [b.concat(0, begin, none), b.concat(0, end, b.cast(none, end.element))]
    column = b.unsqueeze(data, 1)
    made = b.node("ir::Pad", [column, *pads, *value], 1, node.attributes, extras=node.extras)
    return b.squeeze(made.outputs[0], 1)


def _of_vectors(b: Builder, node: Node) -> Iterator[Value]:
    """The Pad of the vector, without the second axis."""
    made = node.inputs[0].producer if node.inputs[0] is not None else None
    if made is None or made.op != "ir::Pad":
        return
    before = [value.producer for value in made.inputs[:3] if value is not None]
    firsts = [maker.input(0) for maker in before if maker is not None]
    if len(firsts) == 3 and None not in firsts:
        yield b.node("ir::Pad", [*firsts, *made.inputs[3:]], 1, made.attributes).outputs[0]


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Pad of a vector by computed pads moves its elements by what lies in memory behind "
    "the pads, often out of the result.",
    fires="At a Pad of a tensor with one axis, if its first pads are not known when the model is "
    "compiled.",
    safe="A second axis of size 1 gets no pads, and is removed again.",
    cost="an Unsqueeze, a Squeeze and two Concats",
    run=rewriting("ir::Pad", by=with_axis),
    guess={"Squeeze": _of_vectors},
)
