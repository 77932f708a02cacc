"""Judges an entry of the suite, of either format."""

from __future__ import annotations

from tests.control_flow import ir_first, judge
from tests.control_flow.suite import Entry


def judge_any(entry: Entry) -> judge.Verdicts:
    """The verdicts on an entry by route."""
    return (ir_first if entry.kind == "ir" else judge).judge(entry)


def judge_default(entry: Entry) -> judge.Verdicts:
    """The verdicts on the routes that conversions take by default."""
    return (ir_first if entry.kind == "ir" else judge).judge(entry, ("default",))


def is_right(entry: Entry, route: str, said: str) -> bool:
    """Whether the verdict on a route is "right", or a refusal that `REFUSED` lists."""
    if route == judge.NO_PROGRAM or said == "right":
        return True
    return dict(entry.levels).get("place") != "top" and any(
        (entry.kind, axis, level) in REFUSED and REFUSED[entry.kind, axis, level] in said
        for axis, level in entry.levels
    )


REFUSED = {("loop", "states", "string"): "it may be a string that no operator of the model names"}
"""Levels that make Bridge refuse a program below the top, and why. An IR has strings only if
operators name them or the top graph hands them on."""
