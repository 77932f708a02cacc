"""Explains a difference: where the models differ first, who is at fault, and the smallest part of
the model that still differs or fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bridge.check.branches import BranchResults
from bridge.check.compare import Difference, Results, Tolerances, compare, differences
from bridge.check.diagnosis.blame import Blame, Ran, blame
from bridge.check.diagnosis.forced import steer, to_switch
from bridge.check.diagnosis.neighbours import Neighbour, neighbourhood
from bridge.check.diagnosis.reduce import OpenOne, Reduced, reduce
from bridge.check.diagnosis.values import FirstDifference, clearest_difference
from bridge.check.engines import Session
from bridge.check.engines.sessions import open_session
from bridge.check.inputs import is_empty
from bridge.check.lines import shortened
from bridge.check.runs import IN_ORDER, Runs
from bridge.check.seek import Sought
from bridge.check.suite import Suite, for_part
from bridge.check.verdict import GIVEN, Verdict
from bridge.errors import BridgeError, amount
from bridge.neutral.graph import Model


@dataclass(frozen=True)
class Diagnosis:
    """The first value that differs, or why none was found; what stands `around` it, by version; who
    is at fault; and the smallest part that differs, or why there is none."""

    first: FirstDifference | str | None = None
    around: Mapping[str, Sequence[Neighbour]] = field(default_factory=dict)
    blame: Blame | None = None
    reduced: Reduced | str | None = None


@dataclass(frozen=True)
class _Mismatch:
    """A version that differs with an input by more than the `allowed` tolerances, if the inputs
    `before` run in the same request. The models have switches at these Ifs. `others` are inputs
    that take other branches, and differ, too."""

    label: str
    feed: Results
    switched: tuple[int, ...]
    allowed: tuple[float, float]
    before: tuple[Results, ...] = ()
    others: tuple[Results, ...] = ()


def _mismatch(
    sought: Sought, verdict: Verdict, branches: BranchResults, tolerances: Tolerances
) -> _Mismatch | None:
    """The first difference of an output, or else of a forced branch."""
    cases = sought.inputs.cases
    wrong = [one for one in verdict.comparisons if not one.ok and one.label != GIVEN]
    for one in wrong[:1]:
        ways = {cases[one.case].taken: one.case}
        for other in wrong:
            ways.setdefault(cases[other.case].taken, other.case)
        _, *others = (cases[place].feeds for place in ways.values())
        allowed = tolerances.of(one.output)
        before = [case.feeds for case in cases[: one.case]] if one.how == IN_ORDER else []
        return _Mismatch(
            one.label, cases[one.case].feeds, (), allowed, tuple(before), tuple(others)
        )
    for branch, forced in branches.forced.items():
        if forced.wrong and forced.given is not None and branch not in branches.pruned:
            switched = to_switch(branches.sites, list(branches.forced))
            return _Mismatch(forced.wrong[0], forced.given, tuple(switched), tolerances.of(""))
    return None


def diagnose(
    suite: Suite,
    sought: Sought,
    runs: Runs,
    verdict: Verdict,
    branches: BranchResults,
    tolerances: Tolerances,
    small: Path | None,
    tell: Callable[[str], None],
) -> Diagnosis:
    """Explains the first difference. If the file `small` is named, writes the smallest part that
    still differs, or with which a version fails."""
    mismatch = _mismatch(sought, verdict, branches, tolerances)
    if mismatch is not None:
        return _Diagnosing(suite, mismatch, runs, tolerances, tell).diagnose(small)
    failed = {one.label: one.case for one in verdict.failed}
    if small is None:
        return Diagnosis()
    if failed or suite.failures:
        feed = sought.inputs.cases[min(failed.values(), default=0)].feeds
        labels = [*failed, *(one.label for one in suite.failures)]
        return Diagnosis(reduced=reduced_failure(suite, labels, feed, small, tell))
    return Diagnosis(reduced="there is nothing to reduce: no number differs")


@dataclass(frozen=True)
class _Diagnosing:
    suite: Suite
    mismatch: _Mismatch
    runs: Runs
    tolerances: Tolerances
    tell: Callable[[str], None]

    def diagnose(self, small: Path | None) -> Diagnosis:
        """Where the models differ first, and who is at fault."""
        mismatch, suite = self.mismatch, self.suite
        models = suite.models()
        if mismatch.switched:
            models = steer(models, mismatch.switched)
        first: FirstDifference | str
        number = 0
        feeds = [mismatch.feed, *mismatch.others]
        if is_empty(mismatch.feed):
            first = (
                "the first value that differs is not sought: the input has no elements, with which "
                "some engines end the process"
            )
        else:
            self.tell("seeking the first difference")
            number, first = clearest_difference(models, self._open_pair, feeds, self._equal)
        around = {}
        if isinstance(first, FirstDifference):
            for variant in (suite.original, suite.of(mismatch.label)):
                around[variant.label] = neighbourhood(variant.path, first.name, first.beside)
        reduced: Reduced | str | None = None
        if small is not None and not is_empty(mismatch.feed):
            opened = _opener(suite, self.tell)
            reduced = reduce(models, feeds[number], first, opened, self._differing, small)
        self.tell("seeking who is at fault")
        try:
            found = self._blame(models, feeds[number])
        except BridgeError as error:
            found = Blame("unknown", shortened(str(error)))
        return Diagnosis(first, around, found, reduced)

    def _open_pair(self, mine: Model, its: Model | None) -> tuple[Session, Session]:
        (_, path), *files = self.suite.changed("seen", mine, its)
        first = open_session(path)
        file = next(path for label, path in files if label == self.mismatch.label)
        return first, open_session(file, like=first)

    def _equal(self, expected: Any, actual: Any) -> Difference:
        rtol, atol = self.mismatch.allowed
        return compare(expected, actual, max(rtol, self.tolerances.of("", expected)[0]), atol)

    def _differing(self, part: Model, other: Model | None, feed: Results) -> set[str]:
        """The outputs in which a part of the model and its version differ."""
        self.tell(f"reducing the model: {amount(len(part.graph.nodes), 'node')}")
        try:
            (_, path), *files = _changed_part(self.suite, part, other)
            first = open_session(path)
            file = next(path for label, path in files if label == self.mismatch.label)
            expected = first.run(feed)
            found = open_session(file, like=first).run(feed)
        except (BridgeError, StopIteration):
            return set()
        return {
            n for n, value in expected.items() if n in found and not self._equal(value, found[n]).ok
        }

    def _blame(self, models: tuple[Model, Model | None], feed: Results) -> Blame:
        suite, label = self.suite, self.mismatch.label
        paths = [suite.original.opened, suite.of(label).opened]
        if self.mismatch.switched:
            (_, mine), *others = suite.changed("wrong", *models)
            paths = [mine, next(path for one, path in others if one == label)]
        first = open_session(paths[0])
        second = open_session(paths[1], like=first)

        def compared(expected: Results, actual: Results) -> dict[str, Difference]:
            found = differences(expected, actual, self.tolerances)
            return {name: how for name, how in found.items() if name in wrong}

        # Some faults of engines show only behind other inputs.
        for feeds in ([feed], [*self.mismatch.before, feed]):
            ran = []
            for path, session in zip(paths, (first, second), strict=True):
                session.renew()
                *_, results = (session.run(one) for one in feeds)
                ran.append(Ran(path, session, results))
            found = differences(ran[0].results, ran[1].results, self.tolerances)
            wrong = {name for name, how in found.items() if not how.ok} - self.runs.random
            if wrong:
                break
        name = suite.of(label).path.name if suite.is_pair else label
        return blame(ran[0], ran[1], name, not suite.is_pair, feeds, compared, suite.scratch)


def _opener(suite: Suite, tell: Callable[[str], None]) -> OpenOne:
    """Opens a change of the original, or else of the other file."""

    def opened(model: Model, is_first: bool) -> Session:
        tell("looking at values, to reduce the model")
        path = suite.original.opened if is_first else suite.files.other
        assert path is not None
        session = open_session(suite.write(model, path, "seen" if is_first else "seen-too"))
        return session

    return opened


def _changed_part(suite: Suite, part: Model, other: Model | None) -> list[tuple[str, Path]]:
    """The files of a part of the original, as `Suite.changed` writes them."""
    return [*replace(suite, files=for_part(suite.files, part)).changed("part", part, other)]


def reduced_failure(
    suite: Suite, failed: Sequence[str], feed: Results, target: Path, tell: Callable[[str], None]
) -> Reduced | str:
    """Writes the smallest part of the model's own graph that the original runs, and a `failed`
    version does not. The version may fail in its conversion, in loading or in running."""

    def failing(part: Model, other: Model | None, feed: Results) -> set[str]:
        tell(f"reducing the model: {amount(len(part.graph.nodes), 'node')}")
        try:
            first = open_session(suite.write(part, suite.original.opened, "alone"))
            first.run(feed)
        except BridgeError:
            return set()
        try:
            for label, path in _changed_part(suite, part, other)[1:]:
                if label in failed or "" in failed:
                    open_session(path, like=first).run(feed)
        except BridgeError:
            return {*part.graph.output_names}
        return set()

    return reduce(suite.models(), feed, "", _opener(suite, tell), failing, target)
