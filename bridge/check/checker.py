"""`check`: converts a model if it must, runs all versions of it, and compares what they compute."""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import bridge
from bridge.boundary import Boundary
from bridge.check.bisect import FirstDifference, first_difference
from bridge.check.compare import Difference, compare, tolerance
from bridge.check.coverage import Branch, Exploration, explore, force, to_switch
from bridge.check.engines import (
    Engine,
    EngineError,
    LacksOperatorError,
    OnnxRuntime,
    OpenVino,
    Port,
    Reference,
    Session,
)
from bridge.check.inputs import Recipe
from bridge.check.instrument import IfSite, expose, if_sites, instrument, named_values
from bridge.check.packed import PackedSession
from bridge.check.report import CheckReport, Result, Version, shortened
from bridge.errors import BridgeError, UsageError
from bridge.neutral.graph import Model
from bridge.onnx_format import text


def check(
    source: str | Path,
    against: str | Path | None = None,
    *,
    seed: int = 0,
    samples: int = 4,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    sizes: Mapping[str, int] | None = None,
    fills: Mapping[str, float] | None = None,
    budget: int = 1500,
    **options: Any,
) -> CheckReport:
    """Show that a model and its conversion compute the same, every branch of every If included.

    Without `against`, `source` is converted to the other format and back, and all three are
    compared; with it, the two files are. `sizes` fixes dimensions by symbol (or `input.axis`),
    `fills` inputs by a number; `budget` bounds the runs that look for inputs. `options` are those
    of `bridge.convert`. Types coarser than `rtol` get two units in the last place.
    """
    with tempfile.TemporaryDirectory(prefix="bridge-check-") as scratch:
        path = Path(source)
        report = CheckReport(str(path), rtol, atol)
        pair = _Pair(path, Path(against) if against is not None else None, Path(scratch), options)
        checker = _Checker(pair, report)
        checker.run(Recipe(seed, dict(sizes or {}), dict(fills or {})), samples, budget)
        return report


Results = Mapping[str, Any]
"""The outputs of a run, by name."""


@functools.cache
def _engine(kind: type[Engine]) -> Engine:
    return OnnxRuntime(seconds=_SECONDS) if kind is OnnxRuntime else kind()


_SECONDS = 60.0  # for one run, so that a Loop that never ends ends


def _load(path: Path) -> tuple[Session, str]:
    """The file, loaded by the engine of its format, and which engine that is."""
    if path.suffix.lower() == ".xml":
        engine = _engine(OpenVino)
        session, boundary = engine.load(path), Boundary.of(path)
        if boundary.inputs or boundary.outputs:
            session = PackedSession(session, boundary)
        return session, f"{engine.name} {engine.version}"
    try:
        engine = _engine(OnnxRuntime)
        return engine.load(path), f"{engine.name} {engine.version}"
    except LacksOperatorError as error:
        engine = _engine(Reference)
        return engine.load(path), f"{engine.name} {engine.version} ({shortened(str(error), 80)})"
    except EngineError:
        if _engine_is_there(OnnxRuntime):
            raise
        engine = _engine(Reference)
        return engine.load(path), f"{engine.name} {engine.version} (no onnxruntime)"


def _engine_is_there(kind: type[Engine]) -> bool:
    try:
        _engine(kind)
    except EngineError:
        return False
    return True


@dataclass
class _Pair:
    """The file that is checked, what it is held against, and how to make the same change to both:
    the change is made to the neutral graph and goes through the same conversions."""

    source: Path
    against: Path | None
    scratch: Path
    options: dict[str, Any]
    pruned: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for path in (self.source, self.against):
            if path is not None and not path.is_file():
                raise UsageError(f"{path}: there is no such file")
        self.source = _binary(self.source, self.scratch)
        self.against = None if self.against is None else _binary(self.against, self.scratch)
        if self.source.suffix.lower() == ".xml" and Boundary.of(self.source).inputs:
            raise UsageError(
                f"{self.source}: its inputs stand for sequences or optionals; "
                "check the ONNX model instead, with this file as the other one"
            )
        self.other_suffix = ".onnx" if self.source.suffix.lower() == ".xml" else ".xml"

    def converted(self, model: Any, name: str) -> Iterator[tuple[str, Path]]:
        """`model` in the other format, then back again, with what each is called."""
        there = self.scratch / f"{name}{self.other_suffix}"
        back = self.scratch / f"{name}-back{self.source.suffix.lower()}"
        kinds = {".onnx": "ONNX", ".xml": "IR"}
        here, other = kinds[self.source.suffix.lower()], kinds[self.other_suffix]
        self.pruned.extend(bridge.convert(model, there, **self.options).pruned)
        yield f"{here} → {other}", there
        self.pruned.extend(bridge.convert(there, back).pruned)
        yield f"{here} → {other} → {here}", back

    def rewritten(self, path: Path, model: Model, name: str) -> Path:
        """A changed model in the format that its file has."""
        target = self.scratch / f"{name}{path.suffix.lower()}"
        bridge.save(model, target)
        return target


def _binary(path: Path, scratch: Path) -> Path:
    """The file, or what a model in text is as the `.onnx` that engines take."""
    if path.suffix.lower() not in text.SUFFIXES:
        return path
    model = scratch / f"{path.stem}.onnx"
    model.write_bytes(text.read_text(path, str(path)).SerializeToString())
    return model


class _Checker:
    def __init__(self, pair: _Pair, report: CheckReport) -> None:
        self.pair = pair
        self.report = report

    def run(self, base: Recipe, samples: int, budget: int) -> None:
        """Fills the report."""
        report, pair = self.report, self.pair
        sessions = self._sessions()
        if not sessions:
            return
        exploration = self._explore(base, samples, budget, sessions[0][1])
        report.refused = dict(exploration.refused)
        report.samples = len(exploration.feeds)
        if not exploration.feeds:
            report.failures.append(
                "no input was found that the model takes; give it sizes that fit"
            )
            return
        self._compare(sessions, exploration.feeds)
        missing = [
            (site.index, branch)
            for site in report.sites
            for branch in (True, False)
            if (site.index, branch) not in report.reached
        ]
        if missing and len(sessions) > 1:
            self._force(missing, exploration.feeds)
        # Not before: with a constant condition the conversion takes a branch and prunes nothing.
        report.pruned = _pruned(report.sites, pair.pruned)
        wrong = [result for result in report.results if not result.worst.ok]
        if wrong:
            feeds = exploration.feeds[wrong[0].sample]
            report.first = self._bisect(feeds)

    def _sessions(self) -> list[tuple[str, Session]]:
        report, pair = self.report, self.pair
        files = [("original", pair.source)]
        if pair.against is not None:
            files.append((pair.against.name, pair.against))
        else:
            try:
                for file in pair.converted(pair.source, "model"):
                    files.append(file)
            except BridgeError as error:
                report.failures.append(f"conversion: {error}")
        sessions: list[tuple[str, Session]] = []
        for label, path in files:
            try:
                session, engine = _load(path)
            except BridgeError as error:
                report.failures.append(f"{label}: {shortened(str(error), 500)}")
                if not sessions:
                    return []
                continue
            report.versions.append(Version(label, path, engine))
            sessions.append((label, session))
        return sessions

    def _explore(self, base: Recipe, samples: int, budget: int, original: Session) -> Exploration:
        report, pair = self.report, self.pair
        model = bridge.load(pair.source)
        watched = bridge.load(pair.source)
        sites = list(if_sites(watched).values())
        session = original
        if sites:
            try:
                instrument(watched)
                session, _ = _load(pair.rewritten(pair.source, watched, "watched"))
                report.sites = sites
            except BridgeError as error:
                report.notes.append(f"branches could not be watched: {shortened(str(error))}")
                sites = []
        exploration = explore(model, session, sites, base, samples, budget)
        report.reached = exploration.reached
        return exploration

    def _compare(
        self, sessions: Sequence[tuple[str, Session]], feeds: Sequence[dict[str, Any]]
    ) -> None:
        report = self.report
        (_, original), *others = sessions
        worst: dict[tuple[str, str], Result] = {}
        for sample, feed in enumerate(feeds):
            expected = original.run(feed)
            for label, session in others:
                try:
                    actual = session.run(self._renamed(feed, session))
                except EngineError as error:
                    report.failures.append(f"{label}, input {sample}: {shortened(str(error), 500)}")
                    continue
                for output, difference in self._differences(original, session, expected, actual):
                    result = Result(label, output, difference, sample)
                    known = worst.get((label, output))
                    if known is None or _badness(difference) > _badness(known.worst):
                        worst[label, output] = result
        report.results = list(worst.values())

    def _renamed(self, feed: Mapping[str, Any], session: Session) -> Mapping[str, Any]:
        """The feed under the session's names: by name, or by position where a name is lost."""
        known = [{port.name, *port.aliases} & set(feed) for port in session.inputs]
        if all(known) or len(session.inputs) != len(feed):
            return feed
        self._note("input names differ between the files; inputs were matched by position")
        return {port.name: value for port, value in zip(session.inputs, feed.values(), strict=True)}

    def _differences(
        self, first: Session, second: Session, expected: Results, actual: Results
    ) -> list[tuple[str, Difference]]:
        """How each output of `first` compares with its counterpart: the output of `second` that
        shares a name, or else the one in its place."""
        report = self.report
        names = [
            next((p.name for p in second.outputs if _shared(port, p)), "") for port in first.outputs
        ]
        if not all(names):
            if len(expected) != len(actual):
                problem = f"outputs {', '.join(actual)}; expected {', '.join(expected)}"
                return [("outputs", Difference(ok=False, problem=problem))]
            self._note("output names differ between the files; outputs were matched by position")
            names = list(actual)
        return [
            (name, compare(value, actual[other], tolerance(value, report.rtol), report.atol))
            for (name, value), other in zip(expected.items(), names, strict=True)
        ]

    def _note(self, text: str) -> None:
        if text not in self.report.notes:
            self.report.notes.append(text)

    def _force(self, missing: list[Branch], feeds: Sequence[dict[str, Any]]) -> None:
        report, pair = self.report, self.pair
        switched = to_switch(report.sites, missing)

        def steered(path: Path) -> Model:
            model = bridge.load(path)
            if len(if_sites(model)) != len(report.sites):
                raise UsageError(f"{path.name} has another number of Ifs than {pair.source.name}")
            instrument(model, switched)
            return model

        try:
            first, _ = _load(pair.rewritten(pair.source, steered(pair.source), "steered"))
            if pair.against is None:
                files = list(pair.converted(steered(pair.source), "steered-too"))
            else:
                other = pair.rewritten(pair.against, steered(pair.against), "steered-too")
                files = [(pair.against.name, other)]
            others = [(label, _load(path)[0]) for label, path in files]
        except BridgeError as error:
            report.notes.append(f"branches could not be forced: {shortened(str(error))}")
            return

        def different(session: Session, expected: Results, actual: Results) -> str:
            found = self._differences(first, session, expected, actual)
            return "; ".join(f"'{name}': {d}" for name, d in found if not d.ok)

        found = force(report.sites, missing, first, others, feeds, different)
        report.forced = {result.branch: result for result in found}

    def _bisect(self, feeds: Mapping[str, Any]) -> FirstDifference | str:
        pair = self.pair
        names = named_values(bridge.load(pair.source))
        if pair.against is not None:
            known = set(named_values(bridge.load(pair.against)))
            names = {name: node for name, node in names.items() if name in known}

        def exposed(some: Sequence[str]) -> tuple[Session, Session]:
            def changed(path: Path) -> Model:
                model = bridge.load(path)
                expose(model, some)
                return model

            first, _ = _load(pair.rewritten(pair.source, changed(pair.source), "exposed"))
            if pair.against is None:
                _, other = next(pair.converted(changed(pair.source), "exposed-too"))
            else:
                other = pair.rewritten(pair.against, changed(pair.against), "exposed-too")
            return first, _load(other)[0]

        try:
            return first_difference(names, exposed, feeds, self.report.rtol, self.report.atol)
        except BridgeError as error:
            return f"the search for the first difference stopped: {shortened(str(error))}"


def _pruned(sites: Sequence[IfSite], lines: Sequence[str]) -> dict[Branch, str]:
    """The branches that the conversion's report says it pruned, and why."""
    found: dict[Branch, str] = {}
    for site in sites:
        where = re.sub(r" / (then|else)_branch(?= / )", "", site.where)
        for line in lines:
            match = re.fullmatch(re.escape(where) + r": its (then|else)_branch (.*)", line)
            if match:
                found[site.index, match[1] == "then"] = match[2]
    return found


def _shared(port: Port, other: Port) -> bool:
    return bool({port.name, *port.aliases} & {other.name, *other.aliases})


def _badness(difference: Difference) -> tuple[bool, bool, int, float]:
    return (not difference.ok, bool(difference.problem), difference.wrong, difference.absolute)
