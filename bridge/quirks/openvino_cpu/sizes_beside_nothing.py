"""Values of a Loop's body that surely have no elements: the CPU plugin does not compute them, and
where they are stacked takes 0 for their open sizes."""

from __future__ import annotations

from dataclasses import replace

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Carried, Invariant, Sliced, Stacked
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.opaque import is_hidden, opaque, undone
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_open_sizes(b: Builder, node: Node, place: Place) -> Result:
    """What the body reads of that kind, of sizes that OpenVINO does not know."""
    exits = node.body.exits()
    if not any(isinstance(exit, Stacked) and _lacks_elements(value) for value, exit in exits):
        return None
    loop_builder = LoopBuilder.of(node)
    opened: dict[int, int] = {}
    for index, port in enumerate(loop_builder.body.inputs):
        if not isinstance(port, Carried | Invariant | Sliced) or port.input is None:
            continue
        outer = loop_builder.inputs[port.input]
        if outer is None or not _lacks_elements(outer) or is_hidden(outer, "shape"):
            continue
        if port.input not in opened:
            opened[port.input] = loop_builder.outer(opaque(b, outer, "shape"))
        loop_builder.body.inputs[index] = replace(port, input=opened[port.input])
    if not opened:
        return None
    loop_builder.drop_unused_inputs()
    return loop_builder.build(b)


def _lacks_elements(value: Value) -> bool:
    """Whether a value has no elements, and sizes that are not known."""
    return 0 in (value.shape or ()) and not is_static(value.shape)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A stack of values that are computed in a Loop's body, and of which one size is known "
    "to be 0 and another is open, has 0 for that, too.",
    fires="At a Loop that stacks values with a size 0 and an open one, and reads such values.",
    safe="A value in the shape that it has is the value; 0 is added to the shape.",
    cost="a Reshape, which copies nothing, and a random number below 1/2, of which a Bucketize "
    "makes 0, for each such value that goes into the Loop",
    run=rewriting("Loop", by=of_open_sizes),
    undo=undone("shape"),
)
