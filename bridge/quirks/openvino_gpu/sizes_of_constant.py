"""A constant whose sizes OpenVINO shall not know. The GPU plugin knows random numbers when it
compiles a model, and computes a VariadicSplit of constants wrongly then."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import is_static, size_of
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.opaque import hides, is_nothing, opaque
from bridge.quirks.quirk import Place, Quirk, rewriting


def gathered(b: Builder, node: Node, place: Place) -> Result:
    """The parts of the constant along the axis, as many as OpenVINO does not know."""
    data, axis = node.inputs[0], known_of(node.inputs[1]).ints
    if data is None or axis is None or not hides(node, "sizes"):
        return None
    if not is_static(data.shape) or size_of(data.shape) == 1:
        return None  # Of one element, the plugin takes the right one.
    if not is_known(_gathered_of(data), place):
        return None
    count = opaque(b, b.constant(data.shape[axis[0]]), "number")
    places = b.op("Range", b.constant(0), count, b.constant(1))
    return b.op("Gather", data, places, b.constant(axis[0]))


def _gathered_of(value: Value) -> Value:
    """The value of which `gathered` takes all parts, along any axes."""
    while value.producer is not None and (before := _all_of(value.producer)) is not None:
        value = before
    return value


def _all_of(node: Node) -> Value | None:
    """The value of which a Gather takes all parts, one after the other."""
    made = node.inputs[1].producer if node.op == "Gather" and node.inputs[1] is not None else None
    data, axis = node.input(0), known_of(node.input(2)).ints
    if made is None or made.op != "Range" or data is None or data.shape is None or axis is None:
        return None
    first, count, step = made.inputs
    total = count.producer if count is not None else None
    if known_of(first).ints != (0,) or known_of(step).ints != (1,):
        return None
    if total is None or total.op != "Add" or total.inputs[1] is None:
        return None
    whole = known_of(total.inputs[0]).ints == (data.shape[axis[0]],)
    return data if whole and is_nothing(total.inputs[1]) else None


def _undone(b: Builder, node: Node, uses: Uses) -> Value | None:
    return _all_of(node)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A VariadicSplit of a constant into one part, whose length is computed from a random "
    "number, gives elements behind the first ones, and what lies in memory behind the constant.",
    fires="At such a VariadicSplit of more than one element, which another quirk writes for the "
    "initial state of a Loop.",
    safe="A Gather of all parts, one after the other, is the tensor.",
    cost="a Range, a Gather, and a 0 from a Bucketize of a random number below 1/2",
    run=rewriting("VariadicSplit", by=gathered),
    undo={"Gather": _undone},
)
