"""OpenVINO does not know that a value of the body is empty, if it is stacked.

The CPU plugin does not compute a value that is surely empty. In a stack, it takes each open size of
such a value for 0.
"""

from __future__ import annotations

from dataclasses import replace

from bridge.neutral.graph import Value
from bridge.neutral.ports import Carried, InputPort, Invariant, Sliced, Stacked, outer_input
from bridge.neutral.types import is_static
from bridge.quirks.opaque import is_hidden, opaque, undone
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[int]:
    """The empty inputs of the body, if the Loop stacks empty values."""
    exits = draft.body.exits()
    if not any(isinstance(exit, Stacked) and _lacks_elements(value) for value, exit in exits):
        return []
    return [index for index, port in enumerate(draft.body.inputs) if _is_known_empty(port, draft)]


def give(draft: Draft, found: list[int]) -> None:
    """The body reads these values in shapes that OpenVINO does not know."""
    loop, opened = draft.loop, dict[int, int]()
    for index in found:
        port = draft.body.inputs[index]
        assert isinstance(port, Carried | Invariant | Sliced) and port.input is not None
        outer = loop.inputs[port.input]
        assert outer is not None
        if port.input not in opened:
            opened[port.input] = loop.outer(opaque(draft.b, outer, "shape"))
        draft.body.inputs[index] = replace(port, input=opened[port.input])
    loop.drop_unused_inputs()


def _is_known_empty(port: InputPort, draft: Draft) -> bool:
    """Whether OpenVINO knows that the value of an input is empty."""
    index = outer_input(port)
    outer = None if index is None else draft.loop.inputs[index]
    if outer is None or not _lacks_elements(outer):
        return False
    return not is_hidden(draft.outside(outer), "shape")


def _lacks_elements(value: Value) -> bool:
    """Whether a value is empty and has unknown sizes."""
    return 0 in (value.shape or ()) and not is_static(value.shape)


QUIRK = Clause(
    holds="OpenVINO does not know that a stacked value is empty.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="A stack has size 0 for an open size, if another size of its values is known to be 0. "
    "The values are computed in the body of a Loop.",
    fires="At a Loop that stacks values with a size of 0 and an open size, and reads such values.",
    safe="A value reshaped to its own shape is the value, and adding 0 does not change the shape.",
    cost="a Reshape, which copies nothing, and a 0 from a Bucketize of a random number below 1/2, "
    "for each such value that enters the Loop",
    undo=undone("shape"),
)
