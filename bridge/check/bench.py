"""The things that all stages of one check have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bridge.check.outputs import Comparison
from bridge.check.pair import Pair
from bridge.check.report import CheckReport


@dataclass(frozen=True)
class Bench:
    """The files of a check, the report that its stages fill, and the tolerances. `tell` is called
    with the progress."""

    pair: Pair
    report: CheckReport
    comparison: Comparison
    tell: Callable[[str], None]
