"""The possible results of a check for a branch."""

from enum import StrEnum


class Shown(StrEnum):
    """What is known of a branch, as scripts read it."""

    REACHED = "reached"
    FORCED = "forced"
    PRUNED = "pruned"
    FAILING = "failing"
    UNKNOWN = "unknown"
    DIFFERENT = "different"


STATES = {
    Shown.REACHED: "reached by inputs",
    Shown.FORCED: "forced and equal",
    Shown.PRUNED: "pruned",
    Shown.FAILING: "cannot run",
    Shown.UNKNOWN: "not shown",
    Shown.DIFFERENT: "DIFFERENT",
}
"""As people read them."""
