"""FakeQuantize of a tensor with one axis. The GPU plugin takes the limits of the first element for
all."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def with_axis(b: Builder, node: Node, place: Place) -> Result:
    """The FakeQuantize of a matrix with one row."""
    data, *limits = node.inputs
    if data is None or data.rank != 1 or data.dims[0] == 1:
        return None
    if any(limit is None or limit.rank is None or limit.rank > 1 for limit in limits):
        return None
    row = [b.unsqueeze(data, 0), *limits]
    made = b.node("FakeQuantize", row, 1, node.attributes, extras=node.extras)
    return b.squeeze(made.outputs[0], 0)


def _of_vectors(b: Builder, node: Node) -> Iterator[Value]:
    """The FakeQuantize of the vector."""
    made = node.inputs[0].producer if node.inputs[0] is not None else None
    if made is None or made.op != "FakeQuantize" or made.inputs[0] is None:
        return
    wider = made.inputs[0].producer
    if wider is not None and wider.op == "Unsqueeze":
        yield b.op("FakeQuantize", wider.inputs[0], *made.inputs[1:], **made.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A FakeQuantize of a vector with limits for each element has the limits of the first "
    "one for all. OpenVINO makes such limits of an Add, a Subtract, a Multiply or a Divide by a "
    "constant vector, before the FakeQuantize or behind it.",
    fires="At a FakeQuantize of a tensor with one axis, unless it has one element.",
    safe="A first axis of size 1 has one row, and is removed again.",
    cost="an Unsqueeze and a Squeeze",
    run=rewriting("FakeQuantize", by=with_axis),
    guess={"Squeeze": _of_vectors},
)
