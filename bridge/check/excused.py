"""Differences that are no fault of a conversion: decisions between values that are equal but for
rounding, what the original's engine rounds, and where 16-bit floats are rounded. Each becomes a
note, with what shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bridge.check.compare import Difference
from bridge.check.decisions import decided
from bridge.check.engines import EngineError, Session
from bridge.check.loading import load
from bridge.check.outputs import Comparison
from bridge.check.pair import Pair
from bridge.check.report import CheckReport
from bridge.check.singles import Singles
from bridge.check.wide import WideModel
from bridge.errors import BridgeError
from bridge.neutral.graph import Model

Row = tuple[int, str, Difference | EngineError]
"""The number of an input, the name of an output, and how it compares or why it is not there."""

Feeds = Sequence[dict[str, Any]]

Excuse = tuple[str, Iterable[tuple[str, Difference]]]
"""What a version differs for, and how its outputs compare without that."""

_MOST = 32  # inputs of a version that are looked at


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
        wide = WideModel(self.report.versions[0].path, self.comparison, self.pair.scratch)
        path = next(version.path for version in self.report.versions if version.label == label)
        singles = Singles(self.pair, self.comparison, path)
        halves = partial(self._halves, sessions[1], singles)
        excused: dict[str, list[int]] = {}
        for seek in (self._decision, partial(self._rounding, sessions, wide), halves):
            for sample in _wrong(rows, aside):
                try:
                    found = seek(label, feeds[sample])
                except BridgeError:
                    break
                if found is None:
                    break
                why, differences = found
                excused.setdefault(why, []).append(sample)
                kept = [row for row in rows if row[0] != sample]
                rows = [*kept, *((sample, name, difference) for name, difference in differences)]
        for why, samples in excused.items():
            self.note(f"with {self._named(samples)}, {label} differs only for {why}")
        return rows

    def _named(self, samples: list[int]) -> str:
        first, *others = samples
        if not others:
            return f"input {first} ({self.report.recipes[first]})"
        return f"inputs {', '.join(map(str, samples[:-1]))} and {samples[-1]}"

    def _decision(self, label: str, feed: dict[str, Any]) -> Excuse | None:
        """Decisions between values that are equal but for rounding."""
        pair = self.pair

        def loaded(mine: Model, its: Model | None) -> tuple[Session, Session]:
            original, others = pair.changed("decided", mine, its)
            return load(original)[0], load(labelled(others, label))[0]

        self.tell("seeking decisions")
        found = decided(*pair.both(), loaded, feed, self.comparison)
        if found is None:
            return None
        nodes, differences = found
        why = (
            f"what {' and '.join(nodes)} decides between values that are equal but for rounding; "
            "each engine decides rightly, and with the same decision all outputs agree"
        )
        return why, differences

    def _rounding(
        self, sessions: tuple[Session, Session], wide: WideModel, label: str, feed: dict[str, Any]
    ) -> Excuse | None:
        """What the engine of the original rounds."""
        self.tell("computing in 64 bits")
        exact = wide.run(feed)
        if exact is None:
            return None
        original, session = sessions
        actual = session.run(self.comparison.renamed(feed, session))
        differences = self.comparison.judged(original, session, feed, exact.results, actual)
        if not all(difference.ok for _, difference in differences):
            return None
        why = (
            f"what the engine of the original rounds: the original, {exact}, gives what {label} "
            "gives"
        )
        return why, differences

    def _halves(
        self, session: Session, singles: Singles, label: str, feed: dict[str, Any]
    ) -> Excuse | None:
        """Where the engines round 16-bit floats."""
        self.tell("computing in 32 bits")
        differences = singles.compared(feed, session.run(self.comparison.renamed(feed, session)))
        if differences is None or not all(difference.ok for _, difference in differences):
            return None
        why = (
            "what engines round of 16-bit floats: computed in 32 bits, the original and "
            f"{label} give the same"
        )
        return why, differences


def labelled(files: Iterable[tuple[str, Path]], label: str) -> Path:
    """The file of this label."""
    return next(path for one, path in files if one == label)


def _wrong(rows: Sequence[Row], aside: Sequence[str]) -> list[int]:
    """The inputs with which something differs, but for those that are set aside."""
    wrong = {sample for sample, _, how in rows if isinstance(how, EngineError) or not how.ok}
    return sorted(sample for sample in wrong if not aside[sample])[:_MOST]
