"""The possible results of a check for a branch."""

from enum import StrEnum


class Standing(StrEnum):
    """What is known of a branch, as scripts read it."""

    REACHED = "reached"
    FORCED = "forced"
    PRUNED = "pruned"
    FAILING = "failing"
    UNKNOWN = "unknown"
    DIFFERENT = "different"


STATES = {
    Standing.REACHED: "reached by inputs",
    Standing.FORCED: "forced and equal",
    Standing.PRUNED: "pruned",
    Standing.FAILING: "cannot run",
    Standing.UNKNOWN: "not shown",
    Standing.DIFFERENT: "DIFFERENT",
}
"""As people read them."""
