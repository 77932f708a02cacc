"""The slice that sets the number of iterations of a TensorIterator is read.

OpenVINO removes a sliced input that nothing reads, and with it the number of iterations.
"""

from __future__ import annotations

from bridge.neutral.graph import Value
from bridge.neutral.ports import Sliced, Yield
from bridge.quirks.opaque import revealed
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[Value]:
    """The slice that sets the number of iterations of a TensorIterator, unless it is an output that
    leads nowhere."""
    if draft.loop.kind == "count":
        return []
    entries, exits = draft.body.entries(), draft.body.exits()
    counter = next(value for value, port in entries if isinstance(port, Sliced))
    # Another clause may have put a copy between.
    is_output = any(exit == Yield(None) and revealed(value) is counter for value, exit in exits)
    return [] if is_output else [counter]


def give(draft: Draft, found: list[Value]) -> None:
    """The slice becomes an output of the body that leads nowhere, so OpenVINO keeps it."""
    draft.body.add_exit(found[0], Yield(None))


QUIRK = Clause(
    holds="The slice that sets the number of iterations is read.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="A TensorIterator loses a sliced input that nothing reads, and so its number of "
    "iterations.",
    fires="At a TensorIterator. OpenVINO may drop all nodes that read its slice.",
    safe="No node reads an output of the body that leads nowhere.",
    cost="one Result in the body",
)
