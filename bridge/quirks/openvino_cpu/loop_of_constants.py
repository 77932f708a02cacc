"""A Loop all of whose inputs are known.

The CPU plugin runs it while it compiles the model, and OpenVINO where it asks what a later result
may be at most; both fail. The plugin takes no random number for known, OpenVINO no Bucketize.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Sliced, outer_input
from bridge.neutral.types import BF16, F16, F32, F64, I32, I64
from bridge.operators import Result
from bridge.operators.control.draft import Draft
from bridge.operators.idioms import cast
from bridge.passes.dead import EFFECTS
from bridge.quirks.known import is_known, unknown_nothing
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

NUMBERS = {BF16, F16, F32, F64, I32, I64}
"""Types of which the plugin takes 0 away."""


def of_something_unknown(b: Builder, node: Node, place: Place) -> Result:
    """The Loop with a trip count that is not known, or slices of something that is not."""
    unread = _unread_slices(node.body)
    if not all(is_known(v, place) for i, v in enumerate(node.inputs) if i not in unread):
        return None
    index = 0 if node.trip_count is not None else _first_sliced(node.body)
    value = None if index is None else node.inputs[index]
    if index is None or value is None or value.element not in NUMBERS:
        return None
    nothing = unknown_nothing(b, 1 if value.rank == 1 else 0)
    draft = Draft.of(node)
    # Where the model is quantised, OpenVINO takes a Subtract for a zero point, and fails.
    draft.inputs[index] = b.op("Add", value, cast(b, nothing, value.element))
    return draft.build(b)


def _unread_slices(body: Body) -> set[int]:
    """The inputs of which nothing reads the slices, and which OpenVINO takes away. The first that
    is sliced stays (`uncounted_slices`)."""
    read: set[Value | None] = {*body.graph.outputs}
    for node in reversed(body.graph.nodes):
        if node.op in EFFECTS or not read.isdisjoint(node.outputs):
            read.update(node.inputs)
    entries = body.entries()
    unread = {p.input for v, p in entries if isinstance(p, Sliced) and v not in read}
    used = {outer_input(port) for value, port in entries if value in read}
    return unread - used - {_first_sliced(body)}


def _first_sliced(body: Body) -> int | None:
    return next((port.input for port in body.inputs if isinstance(port, Sliced)), None)


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A Loop of constants with a stack and an If in it is run while the model is compiled, "
    "and has no memory for that.",
    cost="a random number below 1/2, of which a Bucketize makes 0, added to the trip count or "
    "to what is sliced",
    run=rewriting("Loop", by=of_something_unknown),
)
