"""Judges an entry of the suite, of either format."""

from __future__ import annotations

from tests.control_flow import ir_first, judge
from tests.control_flow.suite import Entry


def judge_any(entry: Entry) -> judge.Verdicts:
    """The verdicts on an entry by route."""
    return (ir_first if entry.kind == "ir" else judge).judge(entry)


def judge_default(entry: Entry) -> judge.Verdicts:
    """The verdicts on the routes that are taken where nobody chooses."""
    return (ir_first if entry.kind == "ir" else judge).judge(entry, ("default",))


def is_right(entry: Entry, route: str, said: str) -> bool:
    """Whether a route says "right", or refuses what `REFUSED` says that it refuses."""
    if route == judge.NO_PROGRAM or said == "right":
        return True
    return dict(entry.levels).get("place") != "top" and any(
        (entry.kind, axis, level) in REFUSED and REFUSED[entry.kind, axis, level] in said
        for axis, level in entry.levels
    )


REFUSED = {("loop", "states", "string"): "it may be a string that no operator of the model names"}
"""Levels with which a program that does not stand at the top is refused, and why: IR has those
strings alone that operators name, and those that are handed on at the top."""
