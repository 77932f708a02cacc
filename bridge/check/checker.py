"""`check`: converts a model if it must, runs all versions of it, and compares what they compute."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import bridge
from bridge.api import ConvertOptions, Source
from bridge.check.around import neighbourhood
from bridge.check.bisect import FirstDifference, first_difference
from bridge.check.collection import little_collection
from bridge.check.compare import Difference, compare, tolerance
from bridge.check.engines import EngineError, Port, Session, run_each
from bridge.check.explore import SECONDS, Probes, explore
from bridge.check.files import facts
from bridge.check.force import Results, force, to_switch
from bridge.check.inputs import Recipe, free_dimensions
from bridge.check.instrument import (
    Branch,
    IfSite,
    expose,
    if_sites,
    instrument,
    named_values,
    values_inside,
)
from bridge.check.loading import load
from bridge.check.memory import as_file, name_of
from bridge.check.pair import Pair
from bridge.check.probe import Probe, probe, ways
from bridge.check.report import CheckReport, Result, Version, shortened
from bridge.errors import BridgeError, UsageError
from bridge.hints import keywords
from bridge.limits import read_limits, usually
from bridge.neutral.graph import Model
from bridge.neutral.types import Interval
from bridge.passes.boundary import dimension
from bridge.replacing import scratch_folder
from bridge.show.layers import layers_with_bodies
from bridge.show.outline import outline


@keywords(ConvertOptions.__annotations__)
def check(
    source: Source,
    against: Source | None = None,
    *,
    seed: int = 0,
    samples: int = 4,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    sizes: Mapping[str, int | Interval] | None = None,
    fills: Mapping[str, float] | None = None,
    budget: int = 1500,
    **options: Unpack[ConvertOptions],
) -> CheckReport:
    """Show that a model and its conversion compute the same, every branch of every If included.

    Without `against`, `source` is converted to the other format and back, and all three are
    compared; with it, the two models are, each a source as for `bridge.convert`. `sizes` fixes or
    bounds dimensions by symbol (or `input.axis`), `fills` inputs by a number; `budget` bounds the
    runs that look for inputs by chance. `options` are those of `bridge.convert`; `weights` is the
    `.bin` of the first of the two that is an IR, and `progress` is called with what is being done.
    Types coarser than `rtol` get two units in the last place. Where one file has weights of f32
    stored as f16, the other runs with its own rounded alike.

    What fails in a conversion or an engine is in the report. Raises UsageError for options that
    make no sense, InvalidModelError for a source that cannot be read.
    """
    _require_numbers(seed, samples, rtol, atol)
    fixed = {name: _size(name, size) for name, size in (sizes or {}).items()}
    weights = options.pop("weights", None)
    tell = options.pop("progress", None) or (lambda step: None)
    limits = read_limits(options.pop("limits", None))
    with usually(limits), little_collection(), scratch_folder() as scratch:
        report = CheckReport(name_of(source), rtol, atol)
        pair = Pair(
            as_file(source, scratch / "source"),
            None if against is None else as_file(against, scratch / "against"),
            scratch,
            options,
            Path(weights) if weights is not None else None,
            report.notes,
        )
        checker = _Checker(pair, report, tell)
        checker.run(Recipe(seed, fixed, dict(fills or {})), samples, budget)
        return report


def _require_numbers(seed: int, samples: int, rtol: float, atol: float) -> None:
    for name, value, least in (("seed", seed, 0), ("samples", samples, 1)):
        if value < least:
            raise UsageError(f"{name} is {value}; it must be {least} or more")
    for name, number in (("rtol", rtol), ("atol", atol)):
        if not (math.isfinite(number) and number >= 0):
            raise UsageError(f"{name} is {number}; a tolerance is a number from 0 on")


def _size(name: str, given: Any) -> int | Interval:
    size = dimension(given)
    if isinstance(size, str):
        raise UsageError(f'the size of "{name}" must be a number or a range, not "{size}"')
    return size


_RUNS = 8  # that an output which differs is asked for; a random bit may be the same in a few


class _Checker:
    def __init__(self, pair: Pair, report: CheckReport, tell: Callable[[str], None]) -> None:
        self.pair = pair
        self.report = report
        self.tell = tell
        self.random: set[str] = set()

    def run(self, base: Recipe, samples: int, budget: int) -> None:
        """Fills the report."""
        report, pair = self.report, self.pair
        sessions = self._sessions()
        if len(sessions) < 2:
            return
        self._explore(base, samples, budget, sessions)
        if not report.feeds:
            report.failures.append(
                "no input was found that the model takes; give it sizes that fit"
            )
            return
        self._compare(sessions, report.feeds)
        missing = [
            (site.index, branch)
            for site in report.sites
            for branch in (True, False)
            if (site.index, branch) not in report.reached
        ]
        if missing:
            self._force(missing, report.feeds)
        # Not before: with a constant condition the conversion takes a branch and prunes nothing.
        report.pruned = _pruned(report.sites, pair.pruned)
        wrong = [result for result in report.results if not result.worst.ok]
        if wrong:
            report.first = self._bisect(report.feeds[wrong[0].sample])
            if isinstance(report.first, FirstDifference):
                name = report.first.name.rpartition(" / ")[2]
                for version in report.versions[:2]:
                    report.around[version.label] = neighbourhood(version.path, name)

    def _sessions(self) -> list[tuple[str, Session]]:
        report, pair = self.report, self.pair
        versions = [("original", pair.source, pair.facts["source"])]
        if pair.against is not None:
            versions.append((pair.against.name, pair.against, pair.facts["against"]))
        else:
            self.tell("converting")
            try:
                for label, path in pair.converted("model"):
                    versions.append((label, path, facts(path)))
            except BridgeError as error:
                report.failures.append(f"conversion: {error}")
        sessions: list[tuple[str, Session]] = []
        for label, path, files in versions:
            self.tell(f"loading {label}")
            try:
                session, engine = load(path, pair.loaded(path) if path.suffix == ".xml" else None)
            except BridgeError as error:
                report.failures.append(f"{label}: {shortened(str(error), 500)}")
                if not sessions:
                    return []
                continue
            report.versions.append(Version(label, path, engine, files))
            sessions.append((label, session))
        return sessions

    def _explore(
        self, base: Recipe, samples: int, budget: int, sessions: list[tuple[str, Session]]
    ) -> None:
        report, pair = self.report, self.pair
        model = pair.load(pair.source)
        _, original = sessions[0]
        # What has a default value here and must be given there is drawn.
        given = {port.name for _, session in sessions[1:] for port in session.inputs}
        model.defaults = {v: d for v, d in model.defaults.items() if given.isdisjoint(v.names)}
        irs = [version.path for version in report.versions if version.path.suffix == ".xml"]
        has_bodies = any(node.bodies for node in model.graph.nodes)
        layers = layers_with_bodies(irs[0]) if irs and has_bodies else None
        report.outline = outline(model, report.source, layers)
        _require_free(base, free_dimensions(model))
        watched = pair.load(pair.source)
        sites = list(if_sites(watched).values())
        session = original
        if sites:
            try:
                instrument(watched)
                session, _ = load(pair.rewritten(pair.source, watched, "watched"))
                report.sites = sites
            except BridgeError as error:
                report.notes.append(f"branches could not be watched: {shortened(str(error))}")
                sites = []
        probes = _probes(model, pair.scratch)
        exploration = explore(
            model, session, sites, base, samples, budget, probes,
            lambda text: self.tell(f"seeking inputs: {text}"),
        )  # fmt: skip
        report.feeds, report.recipes = exploration.feeds, exploration.recipes
        report.taken, report.reached = exploration.taken, exploration.reached
        report.unreachable = exploration.unreachable
        report.runs, report.refused = exploration.runs, dict(exploration.refused)
        if exploration.cut_short:
            self._note(
                f"the search for inputs ended after {SECONDS:g} s, so that branches may have been "
                "forced that an input can reach"
            )

    def _compare(
        self, sessions: Sequence[tuple[str, Session]], feeds: Sequence[dict[str, Any]]
    ) -> None:
        report = self.report
        (_, original), *others = sessions
        worst: dict[tuple[str, str], Result] = {}
        wanted = [original.run(feed) for feed in feeds]
        for label, session in others:
            self.tell(f"comparing {label}")
            found = run_each(session, [self._renamed(feed, session) for feed in feeds])
            for sample, (expected, actual) in enumerate(zip(wanted, found, strict=True)):
                if isinstance(actual, EngineError):
                    why = shortened(str(actual), 500)
                    report.failures.append(f"{label}, input {sample}: {why}")
                    continue
                feed = feeds[sample]
                for output, difference in self._judged(original, session, feed, expected, actual):
                    result = Result(label, output, difference, sample)
                    if not difference.ok:
                        report.wrong.add(sample)
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

    def _judged(
        self, first: Session, second: Session, feed: Results, expected: Results, actual: Results
    ) -> list[tuple[str, Difference]]:
        """As `_differences`; but what is wrong is run again. Outputs in which `first` differs from
        itself are random. What is right when run again, an engine did wrong the first time."""
        found = self._differences(first, second, expected, actual)
        if all(difference.ok for _, difference in found):
            return found
        try:
            *runs, settled = (first.run(feed) for _ in range(_RUNS))
        except EngineError:
            return found
        once_more, later = run_each(second, [self._renamed(feed, second)] * 2)
        if isinstance(once_more, EngineError) or isinstance(later, EngineError):
            return found
        actual = once_more
        for run in runs:
            itself = self._differences(first, first, settled, run)
            self.random |= {name for name, difference in itself if not difference.ok}
        for name, difference in self._differences(second, second, actual, later):
            if difference.ok and name in self.random:
                self._note(f"'{name}' is random in the original, and twice the same in the other")
        again = dict(self._differences(first, second, settled, actual))
        return [(name, self._final(name, once, again.get(name, once))) for name, once in found]

    def _final(self, name: str, once: Difference, again: Difference) -> Difference:
        """What to report of an output that differs `once`, and `again` in a second run."""
        if once.ok:
            return once
        if name in self.random:
            self._note(
                f"'{name}' is random: it has other numbers in each run of the original; only type "
                "and shape are compared"
            )
            return Difference(ok=not once.problem, problem=once.problem, random=True)
        if not again.ok:
            return once
        self._note(
            f"'{name}' was wrong in the first run with an input and right in the second, which is "
            "no fault of the conversion but of the engine (OpenVINO's CPU plugin is known to lose "
            "the output of an If in the first run after another tensor has grown)"
        )
        return again

    def _note(self, text: str) -> None:
        if text not in self.report.notes:
            self.report.notes.append(text)

    def _force(self, missing: list[Branch], feeds: Sequence[dict[str, Any]]) -> None:
        report, pair = self.report, self.pair
        switched = to_switch(report.sites, missing)

        def steered(path: Path) -> Model:
            model = pair.load(path)
            if len(if_sites(model)) != len(report.sites):
                raise UsageError(f"{path.name} has another number of Ifs than {pair.source.name}")
            instrument(model, switched)
            return model

        try:
            first, _ = load(pair.rewritten(pair.source, steered(pair.source), "steered"))
            if pair.against is None:
                files = list(pair.converted("steered-too", steered(pair.source)))
            else:
                other = pair.rewritten(pair.against, steered(pair.against), "steered-too")
                files = [(pair.against.name, other)]
            others = [(label, load(path)[0]) for label, path in files]
        except BridgeError as error:
            report.notes.append(f"branches could not be forced: {shortened(str(error))}")
            return

        def different(session: Session, feed: Results, expected: Results, actual: Results) -> str:
            found = self._judged(first, session, feed, expected, actual)
            return "; ".join(f"'{name}': {d}" for name, d in found if not d.ok)

        found = force(
            report.sites, missing, first, others, feeds, report.taken, different, self.tell
        )
        report.forced = {result.branch: result for result in found}

    def _bisect(self, feeds: Mapping[str, Any]) -> FirstDifference | str:
        pair = self.pair

        def shared(named: Callable[[Model], dict[str, str]]) -> dict[str, str]:
            names = named(pair.load(pair.source))
            if pair.against is None:
                return names
            known = named(pair.load(pair.against))
            return {name: node for name, node in names.items() if name in known}

        def exposed(some: Sequence[str]) -> tuple[Session, Session]:
            self.tell(f"seeking the first difference: at '{some[0]}'")

            def changed(path: Path) -> Model:
                model = pair.load(path)
                expose(model, some)
                return model

            first, _ = load(pair.rewritten(pair.source, changed(pair.source), "exposed"))
            if pair.against is None:
                _, other = next(pair.converted("exposed-too", changed(pair.source)))
            else:
                other = pair.rewritten(pair.against, changed(pair.against), "exposed-too")
            return first, load(other)[0]

        def search(names: Mapping[str, str]) -> FirstDifference | str:
            try:
                return first_difference(names, exposed, feeds, self.report.rtol, self.report.atol)
            except BridgeError as error:
                return f"the search for the first difference stopped: {shortened(str(error))}"

        found = search(shared(named_values))
        if isinstance(found, FirstDifference):
            name = found.name
            inside = search(shared(lambda model: values_inside(model, name)))
            if isinstance(inside, FirstDifference):
                return replace(inside, before=found.before + inside.before)
        return found


_PROBED = 50_000  # nodes of all probes together
_PROBE = 5_000  # nodes of one


def _probes(model: Model, scratch: Path) -> Probes:
    """Cuts probes out of a model and loads them, as long as they stay small."""
    found = ways(model)
    left = _PROBED

    def probed(site: IfSite) -> tuple[Probe, Session] | None:
        nonlocal left
        cut = probe(model, found[site.index], min(_PROBE, left))
        left -= _PROBE if cut is None else len(cut.model.graph.nodes)
        if cut is None:
            return None
        path = scratch / f"probe-{site.index}.onnx"
        try:
            bridge.save(cut.model, path)
            return cut, load(path)[0]
        except BridgeError:
            return None

    return probed


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


def _badness(difference: Difference) -> tuple[bool, bool, bool, int, float]:
    ok, problem, random = difference.ok, bool(difference.problem), difference.random
    return (not ok, problem, random, difference.wrong, difference.absolute)


def _require_free(recipe: Recipe, free: Sequence[str]) -> None:
    """Raises UsageError for a size of what is no open dimension of an input."""
    for key in recipe.sizes:
        name, _, axis = key.rpartition(".")
        if key not in free and not (axis.isdecimal() and f"{name}.*" in free):
            open = f"open are {', '.join(free)}" if free else "all of them are fixed"
            raise UsageError(f'"{key}" is no open dimension of the inputs; {open}')
