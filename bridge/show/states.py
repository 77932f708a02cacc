"""The possible results of a check for a branch."""

from enum import StrEnum


class State(StrEnum):
    """What is known of a branch, as scripts read it."""

    REACHED = "reached"
    FORCED = "forced"
    PRUNED = "pruned"
    FAILING = "failing"
    UNKNOWN = "unknown"
    DIFFERENT = "different"


STATES = {
    State.REACHED: "reached by inputs",
    State.FORCED: "forced and equal",
    State.PRUNED: "pruned",
    State.FAILING: "cannot run",
    State.UNKNOWN: "not shown",
    State.DIFFERENT: "DIFFERENT",
}
"""As people read them."""
