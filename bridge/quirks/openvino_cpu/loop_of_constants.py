"""A Loop all of whose inputs are known.

The CPU plugin runs it while it compiles the model, and OpenVINO where it asks what a later result
may be at most; both fail. The plugin takes no random number for known, OpenVINO no Bucketize.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node
from bridge.neutral.liveness import Needed, unneeded_inputs
from bridge.neutral.ports import Sliced
from bridge.neutral.types import I64, STRING
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, is_positive, scalar
from bridge.quirks.known import is_known
from bridge.quirks.opaque import opaque, undone, unknown_nothing
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_something_unknown(b: Builder, node: Node, place: Place) -> Result:
    """The Loop with a trip count that is not known, or slices of something that is not, or a first
    condition."""
    unread = unneeded_inputs(node, place.facts(Needed))
    if not all(is_known(v, place) for i, v in enumerate(node.inputs) if i not in unread):
        return None
    index = 0 if node.trip_count is not None else _first_sliced(node.body)
    if index is None:
        return _with_unknown_condition(b, node)
    value = node.inputs[index]
    if value is None or value.element in (None, STRING):
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.inputs[index] = opaque(b, value, "content" if index else "number")
    return loop_builder.build(b)


def _with_unknown_condition(b: Builder, node: Node) -> Result:
    """The Loop with a first condition that is not known."""
    loop_builder = LoopBuilder.of(node)
    one = b.op("Add", b.constant(1, I64), unknown_nothing(b, 0))
    go = b.op("Greater", one, b.constant(0, I64))
    if node.condition is not None and not is_positive(node.condition):
        go = b.op("And", scalar(b, node.condition), go)
    loop_builder.inputs[1] = go
    return loop_builder.build(b)


def _first_sliced(body: Body) -> int | None:
    return next((port.input for port in body.inputs if isinstance(port, Sliced)), None)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Loop of constants with a stack and an If in it is run while the model is compiled, "
    "and has no memory for that.",
    fires="At a Loop all of whose inputs OpenVINO knows before the model runs.",
    safe="The trip count or a slice gets 0 added, or is the only row of a stack; a condition is "
    "joined with a true one.",
    cost="a random number below 1/2, of which a Bucketize makes 0, added to the trip count or "
    "to what is sliced, or of which a first condition is made",
    run=rewriting("Loop", by=of_something_unknown),
    undo=undone("number", "content"),
)
