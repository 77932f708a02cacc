"""Differences that are no fault of a conversion: decisions between values that are equal but for
rounding, and what the original's engine rounds. Each becomes a note, with what shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.check.compare import Difference
from bridge.check.decisions import decided
from bridge.check.engines import EngineError, Session
from bridge.check.loading import load
from bridge.check.outputs import Comparison
from bridge.check.pair import Pair
from bridge.check.report import CheckReport
from bridge.check.wide import in_64_bits
from bridge.errors import BridgeError
from bridge.neutral.graph import Model

Row = tuple[int, str, Difference | EngineError]
"""The number of an input, the name of an output, and how it compares or why it is not there."""

Feeds = Sequence[dict[str, Any]]

_MOST = 8  # inputs of a version that are looked at


@dataclass(frozen=True)
class Excuses:
    """Seeks them for the versions of one check. `note` takes what is found, `tell` what is being
    done."""

    pair: Pair
    comparison: Comparison
    report: CheckReport
    note: Callable[[str], None]
    tell: Callable[[str], None]

    def without(
        self,
        label: str,
        sessions: tuple[Session, Session],
        rows: list[Row],
        feeds: Feeds,
        aside: Sequence[str],
    ) -> list[Row]:
        """The rows of a version; those of an input with an excuse say how its outputs compare
        without what is excused. An input that is set aside needs none."""
        rows = self._without_decisions(label, rows, feeds, aside)
        return self._without_rounding(label, sessions, rows, feeds, aside)

    def _without_decisions(
        self, label: str, rows: list[Row], feeds: Feeds, aside: Sequence[str]
    ) -> list[Row]:
        pair = self.pair

        def loaded(mine: Model, its: Model | None) -> tuple[Session, Session]:
            original, others = pair.changed("decided", mine, its)
            return load(original)[0], load(labelled(others, label))[0]

        for sample in _wrong(rows, aside):
            self.tell("seeking decisions")
            try:
                found = decided(*pair.both(), loaded, feeds[sample], self.comparison)
            except BridgeError:
                break
            if found is None:
                break
            nodes, differences = found
            self.note(
                f"with input {sample} ({self.report.recipes[sample]}), {label} differs only for "
                f"what {' and '.join(nodes)} decides between values that are equal but for "
                "rounding; each engine decides rightly, and with the same decision all outputs "
                "agree"
            )
            rows = _replaced(rows, sample, differences)
        return rows

    def _without_rounding(
        self,
        label: str,
        sessions: tuple[Session, Session],
        rows: list[Row],
        feeds: Feeds,
        aside: Sequence[str],
    ) -> list[Row]:
        original, session = sessions
        comparison, path = self.comparison, self.report.versions[0].path
        for sample in _wrong(rows, aside):
            self.tell("computing in 64 bits")
            feed = feeds[sample]
            try:
                wide = in_64_bits(path, feed, comparison, self.pair.scratch)
                if wide is None:
                    break
                actual = session.run(comparison.renamed(feed, session))
            except BridgeError:
                break
            differences = comparison.judged(original, session, feed, wide.results, actual)
            if not all(difference.ok for _, difference in differences):
                break
            self.note(
                f"with input {sample} ({self.report.recipes[sample]}), {label} differs only for "
                f"what the engine of the original rounds: the original, {wide}, gives what "
                f"{label} gives"
            )
            rows = _replaced(rows, sample, differences)
        return rows


def labelled(files: Iterable[tuple[str, Path]], label: str) -> Path:
    """The file of this label."""
    return next(path for one, path in files if one == label)


def _wrong(rows: Sequence[Row], aside: Sequence[str]) -> list[int]:
    """The inputs with which something differs, but for those that are set aside."""
    wrong = {sample for sample, _, how in rows if isinstance(how, EngineError) or not how.ok}
    return sorted(sample for sample in wrong if not aside[sample])[:_MOST]


def _replaced(
    rows: Sequence[Row], sample: int, differences: Iterable[tuple[str, Difference]]
) -> list[Row]:
    kept = [row for row in rows if row[0] != sample]
    return [*kept, *((sample, name, difference) for name, difference in differences)]
