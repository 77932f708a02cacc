"""Slices that say how often a TensorIterator runs: OpenVINO removes them where nothing needs
them."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value, loop_kind
from bridge.neutral.ports import Sliced, Yield
from bridge.neutral.rewrite import EFFECTS
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.opaque import hides
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

OF_TYPES = {"CastLike", "EyeLike", "RandomUniformLike", "Shape", "Size"}
"""Operators that OpenVINO may compute of the type or the shape of an input alone."""


def slice_that_counts(b: Builder, node: Node, place: Place) -> Result:
    """One of the slices is an output that leads nowhere, so that it stays."""
    slices = [value for value, port in node.body.entries() if isinstance(port, Sliced)]
    if loop_kind(node) == "count" or not elements_read(node.body).isdisjoint(slices):
        return None
    outputs = [value for value, exit in node.body.exits() if exit == Yield(None)]
    if any(slices[0] in (value, _copied(value)) for value in outputs):
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.body.add_exit(slices[0], Yield(None))
    return loop_builder.build(b)


def elements_read(body: Body) -> set[Value | None]:
    """The values of a body whose elements its outputs surely need. Bodies inside may be opened by
    OpenVINO, and lose what they read."""
    read: set[Value | None] = {
        value
        for value, exit in body.exits()
        if exit != Yield(None) or value not in body.graph.inputs
    }
    for node in reversed(body.graph.nodes):
        if node.op in EFFECTS or not read.isdisjoint(node.outputs):
            read.update(() if node.bodies or node.op in OF_TYPES else node.inputs)
    return read


def _copied(value: Value) -> Value | None:
    """What a value is a copy of, which another quirk may have made."""
    made = value.producer
    return made.inputs[0] if made is not None and hides(made, "memory") else None


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="A TensorIterator loses a sliced input that nothing reads, and with it the number of "
    "its iterations.",
    fires="At a TensorIterator of whose slices no elements are surely read.",
    safe="An output of the body that leads nowhere is read by nobody.",
    cost="one Result in the body",
    run=rewriting("Loop", by=slice_that_counts),
)
