"""A state whose shape changes and that nothing behind the Loop takes: where OpenVINO knows the
first shape, it takes it for that of every iteration."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Yield
from bridge.neutral.types import Interval, high
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.opaque import FAR, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def used_growth(b: Builder, node: Node, place: Place) -> Result:
    """The state leaves the Loop and is used."""
    loop_builder = LoopBuilder.of(node)
    body = loop_builder.body
    grown = [
        (value, port)
        for value, port in body.entries()
        if isinstance(port, Carried)
        and body.outputs[port.output] == Yield(None)
        and port.input is not None
        and _grows(value, loop_builder.initial(port))
    ]
    sliced = next((i for i, v in enumerate(node.outputs) if v.rank is not None), None)
    if not grown or sliced is None:
        return None
    count = len(node.outputs)
    for index, (_, port) in enumerate(grown, count):
        body.outputs[port.output] = Yield(index)
    outputs = loop_builder.make(b, further=len(grown))
    results = list(outputs[:count])
    # A bound on a slice that takes all: nothing of it can be known before the Loop has run.
    end = b.constant([FAR])
    for (value, _), state in zip(grown, outputs[count:], strict=True):
        state.type = state.declared = value.type
        size = b.op("ReduceMax", b.op("Shape", state), [0], keepdims=True)
        end = b.op("Max", end, size)
    whole, zero = results[sliced], b.constant([0])
    if whole.rank == 0:
        line = b.op("Slice", b.op("Unsqueeze", whole, zero), zero, end, zero)
        results[sliced] = b.op("Squeeze", line, zero)
    else:
        results[sliced] = b.op("Slice", whole, zero, end, zero)
    return results


def _grows(state: Value, initial: Value | None) -> bool:
    """Whether a size of a state is known at first, or bounded, and may be another later."""
    if initial is None or state.rank is None or state.rank != initial.rank:
        return True
    sizes = zip(initial.dims, state.dims, strict=True)
    return any(isinstance(any_, Interval) and high(first) is not None for first, any_ in sizes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A state that grows and that nothing behind the Loop takes keeps its first shape.",
    fires="At a state that grows, whose first size is known or bounded, and that nothing behind "
    "the Loop takes.",
    safe="A Slice up to 2^30 or further takes all of the other output.",
    cost="an output, its Shape, and a Slice of another output",
    run=rewriting("Loop", by=used_growth),
    undo=undone("sizes"),
)
