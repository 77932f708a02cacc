"""Slices that say how often a TensorIterator runs: OpenVINO removes them where nothing needs
them."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, loop_kind
from bridge.neutral.ports import Sliced, Yield
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.opaque import revealed
from bridge.quirks.quirk import Place, Quirk, rewriting


def slice_that_counts(b: Builder, node: Node, place: Place) -> Result:
    """One of the slices is an output that leads nowhere, so that it stays."""
    if loop_kind(node) == "count":
        return None
    body = node.body
    counter = next(value for value, port in body.entries() if isinstance(port, Sliced))
    outputs = [value for value, exit in body.exits() if exit == Yield(None)]
    if counter in map(revealed, outputs):  # Another quirk may have put a copy between.
        return None
    loop_builder = LoopBuilder.of(node)
    loop_builder.body.add_exit(counter, Yield(None))
    return loop_builder.build(b)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A TensorIterator loses a sliced input that nothing reads, and with it the number of "
    "its iterations.",
    fires="At a TensorIterator: what OpenVINO finds unread may be read by what it drops.",
    safe="An output of the body that leads nowhere is read by nobody.",
    cost="one Result in the body",
    run=rewriting("Loop", by=slice_that_counts),
)
