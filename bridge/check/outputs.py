"""Compares the outputs of two sessions. Pairs the outputs, and finds random outputs and outputs
that an engine gets wrong only once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bridge.check.compare import Difference, compare, tolerance
from bridge.check.engines import EngineError, Session, ValueInfo

Results = Mapping[str, Any]
"""The inputs or outputs of a run, by name."""

_RUNS = 8  # that an output which differs is asked for; a random bit may be the same in a few

RTOL, ATOL = 1e-3, 1e-5
"""What outputs may differ by, unless something else is asked for."""


class Comparison:
    """Compares within these tolerances; `note` is told what a reader should know. `own` are the
    tolerances of single outputs, the relative one first. `random` are the outputs that have other
    numbers in each run of the original."""

    def __init__(
        self,
        rtol: float,
        atol: float,
        note: Callable[[str], None],
        own: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.rtol = rtol
        self.atol = atol
        self.own = own or {}
        self.note = note
        self.random: set[str] = set()

    def renamed(self, feed: Results, session: Session) -> Results:
        """The feed under the session's names: by name, or by position where a name is lost."""
        known = [{port.name, *port.aliases} & set(feed) for port in session.inputs]
        if all(known) or len(session.inputs) != len(feed):
            return feed
        self.note("input names differ between the files; inputs were matched by position")
        return {port.name: value for port, value in zip(session.inputs, feed.values(), strict=True)}

    def aligned(self, first: Session, second: Session, results: Results) -> Results | None:
        """The outputs of `second` under the names of `first`. Outputs match by a shared name, or
        else by position. None if one session has more outputs than the other."""
        names = [
            next((p.name for p in second.outputs if _shared(port, p)), "") for port in first.outputs
        ]
        if not all(names):
            if len(first.outputs) != len(results):
                return None
            self.note("output names differ between the files; outputs were matched by position")
            names = list(results)
        return {p.name: results[name] for p, name in zip(first.outputs, names, strict=True)}

    def differences(
        self, expected: Results, actual: Results | None
    ) -> list[tuple[str, Difference]]:
        """How each output compares with the output of the same name."""
        if actual is None:
            return [("outputs", Difference(ok=False, problem="are not as many as expected"))]
        return [
            (name, self.compared(name, value, actual[name])) for name, value in expected.items()
        ]

    def allowed(self, name: str) -> tuple[float, float]:
        """The relative and the absolute tolerance of an output."""
        return self.own.get(name, (self.rtol, self.atol))

    def compared(self, name: str, expected: Any, actual: Any) -> Difference:
        """How two values of an output compare."""
        rtol, atol = self.allowed(name)
        return compare(expected, actual, tolerance(expected, rtol), atol)

    def judged(
        self, first: Session, second: Session, feed: Results, expected: Results, actual: Results
    ) -> list[tuple[str, Difference]]:
        """As `differences`, but wrong outputs are computed again. An output is random if `first`
        differs from itself there. If it is right in the second run, the engine was wrong once."""
        found = self.differences(expected, self.aligned(first, second, actual))
        if all(difference.ok for _, difference in found):
            return found
        try:
            *runs, settled = (first.run(feed) for _ in range(_RUNS))
        except EngineError:
            return found
        once_more, later = second.run_each([self.renamed(feed, second)] * 2)
        if isinstance(once_more, EngineError) or isinstance(later, EngineError):
            return found
        for run in runs:
            itself = self.differences(settled, run)
            self.random |= {name for name, difference in itself if not difference.ok}
        for name, difference in self.differences(once_more, later):
            if difference.ok and name in self.random:
                self.note(f"'{name}' is random in the original, and twice the same in the other")
        again = dict(self.differences(settled, self.aligned(first, second, once_more)))
        return [(name, self._final(name, once, again.get(name, once))) for name, once in found]

    def _final(self, name: str, once: Difference, again: Difference) -> Difference:
        """What to report of an output that differs `once`, and `again` in a second run."""
        if once.ok:
            return once
        if name in self.random:
            self.note(
                f"'{name}' is random: it has other numbers in each run of the original; only type "
                "and shape are compared"
            )
            return Difference(ok=not once.problem, problem=once.problem, random=True)
        if not again.ok:
            return once
        self.note(
            f"'{name}' was wrong in the first run with an input and right in the second, which is "
            "no fault of the conversion but of the engine (OpenVINO's CPU plugin is known to lose "
            "the output of an If in the first run after another tensor has grown)"
        )
        return again


def _shared(port: ValueInfo, other: ValueInfo) -> bool:
    return bool({port.name, *port.aliases} & {other.name, *other.aliases})
