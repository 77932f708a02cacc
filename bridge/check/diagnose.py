"""Explains a difference: where the models differ first, who is at fault, and the smallest part of
the model that still differs or fails."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bridge.check.branches import BranchResults
from bridge.check.compare import Difference, Results, Tolerances, compare, differences
from bridge.check.diagnosis.blame import Blame, Ran, blame
from bridge.check.diagnosis.neighbours import Neighbour, neighbourhood
from bridge.check.diagnosis.reduce import Reduced, reduce
from bridge.check.diagnosis.values import FirstDifference, first_difference
from bridge.check.engines import EngineError, Session
from bridge.check.force import steer, to_switch
from bridge.check.inputs import is_empty
from bridge.check.runs import ALONE, IN_ORDER, Runs
from bridge.check.seek import Sought
from bridge.check.suite import Models, Suite, for_part
from bridge.check.verdict import GIVEN, Verdict
from bridge.errors import BridgeError, amount, shortened
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
    """A version that differs with an input by more than the `allowed` tolerances, `how` it ran, and
    the inputs `before` in the same request. The models have switches at these Ifs."""

    label: str
    feed: Results
    allowed: tuple[float, float]
    how: str = ALONE
    before: tuple[Results, ...] = ()
    switched: tuple[int, ...] = ()
    case: int = -1


def _mismatch(
    sought: Sought, verdict: Verdict, branches: BranchResults, tolerances: Tolerances
) -> _Mismatch | None:
    """The first difference of an output, or else of a forced branch."""
    cases = sought.inputs.cases
    for one in verdict.comparisons:
        if not one.ok and one.label != GIVEN:
            before = [case.feeds for case in cases[: one.case]] if one.how == IN_ORDER else []
            allowed = tolerances.of(one.output)
            return _Mismatch(
                one.label, cases[one.case].feeds, allowed, one.how, tuple(before), case=one.case
            )
    for branch, forced in branches.forced.items():
        if forced.wrong and forced.given is not None and branch not in branches.pruned:
            switched = tuple(to_switch(branches.sites, list(branches.forced)))
            allowed = tolerances.of("")
            return _Mismatch(forced.wrong[0], forced.given, allowed, switched=switched)
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
        if is_empty(mismatch.feed):
            return Diagnosis(
                "the first value that differs is not sought: the input has no elements, with which "
                "some engines end the process",
                blame=self._blame(models),
            )
        self.tell("seeking the first difference")
        first = first_difference(models, self._opened, mismatch.feed, self._equal)
        around = {}
        if isinstance(first, FirstDifference):
            for variant in (suite.original, suite.of(mismatch.label)):
                around[variant.label] = neighbourhood(variant.path, first.name, first.beside)
        reduced: Reduced | str | None = None
        if small is not None:
            wrong = _wrong_part(suite, {mismatch.label}, self.tell, self._equal)
            opened = _opener(suite, self.tell)
            reduced = reduce(models[0], mismatch.feed, first, opened, wrong, small)
        return Diagnosis(first, around, self._blame(models), reduced)

    def _opened(self, models: Models, name: str = "seen") -> tuple[Session, Session]:
        """Sessions of both models after a change."""
        first, other = self.suite.changed(name, models, self.mismatch.label).variants
        return first.session, other.session

    def _equal(self, expected: Any, actual: Any) -> Difference:
        rtol, atol = self.mismatch.allowed
        return compare(expected, actual, max(rtol, self.tolerances.of("", expected)[0]), atol)

    def _differences(self, expected: Results, actual: Results) -> dict[str, Difference]:
        """How outputs compare, in what the original determines of them."""
        case = self.mismatch.case
        wanted, given = (self.runs.settled(case, one) for one in (expected, actual))
        found = differences(wanted, given, self.tolerances)
        return {name: how for name, how in found.items() if not self.runs.is_open(case, name)}

    def _blame(self, models: Models) -> Blame:
        self.tell("seeking who is at fault")
        try:
            return self._blamed(models)
        except BridgeError as error:
            return Blame("unknown", shortened(str(error)))

    def _blamed(self, models: Models) -> Blame:
        suite, mismatch = self.suite, self.mismatch
        ran_in = suite.changed("wrong", models, mismatch.label) if mismatch.switched else suite
        wrong = set[str]()

        def compared(expected: Results, actual: Results) -> dict[str, Difference]:
            found = self._differences(expected, actual)
            return {name: how for name, how in found.items() if name in wrong}

        # Some faults of engines show only behind other inputs.
        for before in ((), mismatch.before):
            feeds = [*before, mismatch.feed]
            ran: list[Ran] = []
            for variant in (ran_in.original, ran_in.of(mismatch.label)):
                session = variant.session
                outcomes = session.run_each(feeds[:1], fresh=True) + session.run_each(feeds[1:])
                if isinstance(outcomes[-1], EngineError):
                    raise outcomes[-1]
                ran.append(Ran(variant.opened, session, outcomes[-1]))
            found = self._differences(ran[0].results, ran[1].results)
            wrong |= {name for name, how in found.items() if not how.ok}
            if wrong:
                name = suite.of(mismatch.label).path.name if suite.is_pair else mismatch.label
                made = not suite.is_pair
                mine, its = ran
                return blame(mine, its, name, made, feeds, compared, suite.scratch, suite.sessions)
        if mismatch.how in (IN_ORDER, ALONE):
            return Blame("unknown", "the difference is not there in every run")
        return Blame(
            "unknown",
            f"{mismatch.label} differs only in {mismatch.how}, where it keeps the states itself; "
            "no other engine runs it so",
        )


def _opener(suite: Suite, tell: Callable[[str], None]) -> Callable[[Model], Session]:
    """Opens a change of the original."""

    def opened(model: Model) -> Session:
        tell("looking at values, to reduce the model")
        return suite.open(model, "seen")

    return opened


def _wrong_part(
    suite: Suite,
    labels: Collection[str],
    tell: Callable[[str], None],
    equal: Callable[[Any, Any], Difference] | None = None,
) -> Callable[[Model, Results], set[str]]:
    """Gives the outputs of a part of the original in which one of these versions of it differs. If
    there is no `equal`, all outputs, if a version fails: "" is any version."""

    def wrong(part: Model, feed: Results) -> set[str]:
        tell(f"reducing the model: {amount(len(part.graph.nodes), 'node')}")
        try:
            expected = suite.open(part, "alone").run(feed)
        except BridgeError:
            return set()
        found = set[str]()
        try:
            whole = replace(suite, files=for_part(suite.files, part))
            only = next(iter(labels)) if len(labels) == 1 else ""
            for variant in whole.changed("part", (part, None), only).others:
                if variant.label in labels or "" in labels:
                    actual = variant.session.run(feed)
                    names = expected.keys() & actual.keys() if equal else ()
                    found |= {n for n in names if equal and not equal(expected[n], actual[n]).ok}
        except BridgeError:
            return set() if equal else {*part.graph.output_names}
        return found

    return wrong


def reduced_failure(
    suite: Suite, failed: Sequence[str], feed: Results, target: Path, tell: Callable[[str], None]
) -> Reduced | str:
    """Writes the smallest part of the model's own graph that the original runs, and a `failed`
    version does not. The version may fail in its conversion, in loading or in running."""
    opened, wrong = _opener(suite, tell), _wrong_part(suite, failed, tell)
    return reduce(suite.models()[0], feed, "", opened, wrong, target)
