"""Each state is read, or stays as it is.

OpenVINO drops a state that no iteration reads, and with it the initial value.
"""

from __future__ import annotations

from bridge.neutral.graph import Value
from bridge.neutral.ports import Carried, Yield
from bridge.quirks.guarded_loops import read_inside
from bridge.quirks.safe_loop import Clause, Draft


def lacks(draft: Draft) -> list[Value]:
    """The states that no iteration reads, and that do not stay as they are."""
    body = draft.body
    read = read_inside(body).union(v for v, exit in body.exits() if exit == Yield(None))
    return [
        value
        for value, port in body.entries()
        if isinstance(port, Carried) and value not in read
        if body.graph.outputs[port.output] is not value
    ]


def give(draft: Draft, found: list[Value]) -> None:
    """Such a state becomes an output of the body that leads nowhere, so OpenVINO keeps it."""
    for value in found:
        draft.body.add_exit(value, Yield(None))


QUIRK = Clause(
    holds="Each state is read, or stays as it is.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="If no iteration runs, a state that nothing in the body reads is unset memory.",
    fires="At a Loop with such a state, unless the state stays as it is.",
    safe="No node reads an output of the body that leads nowhere.",
    cost="one Result in the body for each such state",
)
