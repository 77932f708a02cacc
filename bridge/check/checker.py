"""`check`: converts a model if it must, runs all versions of it, and compares what they compute."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np

import bridge
from bridge.check.as_run import as_people_run
from bridge.check.aside import is_empty, why_aside
from bridge.check.bisect import FirstDifference, Look, first_difference
from bridge.check.calls import States
from bridge.check.collection import little_collection
from bridge.check.compare import Difference
from bridge.check.demands import share_symbols, shared
from bridge.check.device import RAN_ON, DeviceCheck
from bridge.check.empty_inputs import tried
from bridge.check.endless import endless_loop
from bridge.check.engines import EngineError, LacksOperatorError, Session, run_each
from bridge.check.excused import Excuses, Row
from bridge.check.explore import SECONDS, Exploration, Probes, explore
from bridge.check.fault import Disagreement, Fault, judge
from bridge.check.files import FileFacts, facts
from bridge.check.fitting import sizes_that_fit
from bridge.check.force import Forced, force, steered_sites, to_switch
from bridge.check.inputs import Recipe, free_dimensions
from bridge.check.instrument import TAKEN, Branch, Site, instrument, is_forcible, sites_of, ways
from bridge.check.lines import shortened
from bridge.check.loading import load, running_on, time_limit
from bridge.check.matching import matched_sites, shared_sizes, with_sizes
from bridge.check.memory import as_file, name_of
from bridge.check.neighbourhood import neighbourhood
from bridge.check.outputs import ATOL, RTOL, Comparison, Results
from bridge.check.own_inputs import (
    Place,
    files_of as files_of_inputs,
    places_of,
    read_inputs,
    require_free,
    save_feeds,
)
from bridge.check.pair import Pair, labelled
from bridge.check.parts import is_too_large
from bridge.check.probe import Probe, probe
from bridge.check.reduce import files_of as files_of_part, reduced
from bridge.check.report import CONVERSION, CheckReport, Result, Version
from bridge.check.specialized import NEVER_TAKEN, Fixed
from bridge.check.stateful import AgreedSession, keeps_states
from bridge.check.taps import expose, last
from bridge.errors import BridgeError, UsageError
from bridge.files.atomic_write import scratch_folder
from bridge.files.outputs import require_outputs
from bridge.library.api import Source
from bridge.limits import read_limits, usually
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model, Node
from bridge.neutral.types import Interval, innermost
from bridge.options import CheckOptions, ConvertOptions, Ranges, Tolerance
from bridge.options.option import declared
from bridge.options.suggestions import keywords, unknown
from bridge.passes.boundary import dimension
from bridge.passes.state.pairs import restore_pairs
from bridge.show.layers import layers_with_bodies
from bridge.show.outline import outline


@keywords(CheckOptions)
def check(
    source: Source, against: Source | None = None, **options: Unpack[CheckOptions]
) -> CheckReport:
    """Show that a model and its conversion compute the same, every branch of every If included.

    Without `against`, `source` is converted to the other format and back, and all three are
    compared; with it, the two models are compared. Each is a source as for `bridge.convert`.

    With `device` or `openvino`, a layer, type or size that these do not take is a failure.
    OpenVINO's plugin for the device runs the IR, or its CPU plugin where there is no such device.
    Types coarser than `rtol` get two units
    in the last place. If one file has weights of f32 stored as f16, the weights of the other are
    rounded too.

    <options>

    The report has all failures of conversions and engines. Raises UsageError for options that make
    no sense, InvalidModelError for a source that cannot be read.

    >>> report = check("model.onnx")
    >>> report.ok
    True
    >>> check("model.onnx", ranges={"x": (0, 1)}, save_inputs="inputs").ok
    True
    >>> check("model.onnx", inputs="inputs/input-0.npz", samples=0, rtol={"*": 1e-2}).ok
    True
    >>> open("report.html", "w", encoding="utf-8").write(report.as_html()) > 0
    True
    """
    asked: dict[str, Any] = {
        name: options.get(name, option.default)
        for name, option in declared(CheckOptions)
        if name not in ConvertOptions.__annotations__
    }
    conversion = cast(ConvertOptions, {k: v for k, v in options.items() if k not in asked})
    inputs, reduce, save_inputs = asked["inputs"], asked["reduce"], asked["save_inputs"]
    seed, samples, timeout = asked["seed"], asked["samples"], asked["timeout"]
    tolerances = _tolerances(asked["rtol"], asked["atol"])
    places = places_of(inputs)
    _require_numbers(seed, samples, 0 if places else 1)
    if save_inputs is not None:
        require_free(Path(save_inputs))
    fixed = {name: _size(name, size) for name, size in (asked["sizes"] or {}).items()}
    weights = conversion.pop("weights", None)
    tell = conversion.pop("progress", None) or (lambda step: None)
    limits = read_limits(conversion.pop("limits", None))
    with usually(limits), little_collection(), time_limit(timeout), scratch_folder() as scratch:
        report = CheckReport(name_of(source), *tolerances.pop("*"), tolerances=tolerances)
        report.device = DeviceCheck.of(conversion)
        pair = Pair(
            as_file(source, scratch / "source"),
            None if against is None else as_file(against, scratch / "against"),
            scratch,
            conversion,
            Path(weights) if weights is not None else None,
            report.notes,
        )
        small = None if reduce is None else Path(reduce)
        if small is not None and small.suffix.lower() != pair.source.suffix.lower():
            raise UsageError(
                f"{small}: is for a part of {pair.source.name}; let it end in {pair.source.suffix}"
            )
        if small is not None:
            other = None if pair.against is None else pair.against.suffix.lower()
            read = [file for m in (source, against) if isinstance(m, Model) for file in m.files]
            read += [str(weights)] if weights is not None else []
            require_outputs(
                files_of_part(small, other),
                [Path(path) for path in (source, against) if isinstance(path, str | os.PathLike)],
                [*map(Path, read), *files_of_inputs(inputs)],
                conversion.get("force", False),
            )
        quick = asked["quick"]
        checker = _Checker(pair, report, tell, small, timeout, quick)
        base = Recipe(seed, fixed, dict(asked["fills"] or {}), ranges=dict(asked["ranges"] or {}))
        if quick:
            samples = min(samples, 2)
        with running_on(report.device.ran_on if report.device is not None else RAN_ON):
            checker.run(base, samples, asked["budget"], places)
        if save_inputs is not None:
            report.saved = save_feeds(Path(save_inputs), report.feeds, checker.bad)
        return report


def _require_numbers(seed: int, samples: int, fewest: int) -> None:
    for name, value, least in (("seed", seed, 0), ("samples", samples, fewest)):
        if value < least:
            raise UsageError(f"{name} is {value}; it must be {least} or more")


def _tolerances(rtol: Tolerance | None, atol: Tolerance | None) -> dict[str, tuple[float, float]]:
    """The relative and the absolute tolerance by the output's name, with "*" for the others."""
    relative = _by_output("rtol", RTOL if rtol is None else rtol, RTOL)
    absolute = _by_output("atol", ATOL if atol is None else atol, ATOL)
    return {
        name: (relative.get(name, relative["*"]), absolute.get(name, absolute["*"]))
        for name in sorted({*relative, *absolute})
    }


def _by_output(name: str, given: Tolerance, usual: float) -> dict[str, float]:
    """A tolerance by the output's name, with "*" for the others."""
    found = {"*": usual, **(given if isinstance(given, Mapping) else {"*": given})}
    for number in found.values():
        if not (math.isfinite(number) and number >= 0):
            raise UsageError(f"{name} is {number}; a tolerance is a number from 0 on")
    return found


def _size(name: str, given: Any) -> int | Interval:
    size = dimension(given)
    if isinstance(size, str):
        raise UsageError(f'the size of "{name}" must be a number or a range, not "{size}"')
    return size


_REWRITTEN = "original, rewritten"
_GIVEN = "original, held to the outputs that were given"


class _Checker:
    def __init__(
        self,
        pair: Pair,
        report: CheckReport,
        tell: Callable[[str], None],
        small: Path | None,
        seconds: float,
        quick: bool,
    ) -> None:
        self.quick = quick
        self.pair = pair
        self.seconds = seconds
        self.small = small
        self.report = report
        self.tell = tell
        self.comparison = Comparison(report.rtol, report.atol, self._note, report.tolerances)
        self.fixed = Fixed()
        self.bad: dict[int, str] = {}  # inputs, and what is wrong with them
        self.failed: dict[str, int] = {}  # versions that fail, and the first input with which

    def run(self, base: Recipe, samples: int, budget: int, places: Sequence[Place]) -> None:
        """Fills the report."""
        report, pair = self.report, self.pair
        if self._is_endless():
            return
        sessions = self._sessions()
        if len(sessions) < 2:
            if sessions and self.small is not None:
                self._reduce_failure(self._any_input(sessions[0][1], base), self.small)
            return
        _require_names(report.tolerances, sessions[0][1])
        self._explore(base, samples, budget, sessions, places)
        if not report.feeds:
            return
        self._compare(sessions, report.feeds, base.chosen)
        gone = self.fixed.never_taken(pair.load(pair.source)) if self.fixed else set()
        never = {branch: NEVER_TAKEN for branch in gone - report.reached.keys()}
        missing = [
            branch
            for branch in report.branches
            if (branch not in report.reached and branch not in never) or branch in report.doubtful
        ]
        if missing:
            self._force(missing)
        # Not before: if a condition is constant, the conversion keeps one branch, prunes nothing.
        report.pruned = _pruned(report.sites, pair.pruned) | never
        mismatch = self._mismatch()
        if mismatch is not None:
            self._explain(mismatch)
        elif self.small is not None and self.failed:
            self._reduce_failure(report.feeds[min(self.failed.values())], self.small)
        elif self.small is not None:
            report.reduced = "there is nothing to reduce: no number differs"

    def _is_endless(self) -> bool:
        """Whether the model cannot be run, because one of its Loops never ends."""
        given = self.pair.options.get("values") or {}
        try:
            why = endless_loop(self.pair.loaded(self.pair.source), given, self.seconds)
        except BridgeError:  # which the conversion tells
            return False
        self.report.failures += [why] if why else []
        return bool(why)

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
                report.failures.append(f"{CONVERSION}{error}")
                self.failed[""] = 0
        sessions: list[tuple[str, Session]] = []
        for label, path, files in versions:
            try:
                sessions.append((label, self._loaded(label, path, files)))
            except BridgeError as error:
                is_rewritten = bool(sessions) and report.versions[0].label == _REWRITTEN
                if not sessions or is_rewritten:
                    session = self._stand_in(label, path, files, error)
                    if session is not None:
                        sessions.append((label, session))
                        continue
                report.failures.append(f"{label}: {shortened(str(error), 500)}")
                self.failed[label] = 0
                self._note_way_back(path)
                if not sessions:
                    return []
        return sessions

    def _note_way_back(self, path: Path) -> None:
        """Notes that the way back is not shown, if an IR that the check made does not run."""
        if self.pair.against is None and path.suffix == ".xml" and path != self.pair.source:
            self._note(
                "no engine ran the IR: the way back proves nothing by itself, since it replays "
                "the rules, and a wrong rule is right there and back"
            )

    def _loaded(self, label: str, path: Path, files: tuple[FileFacts, ...]) -> Session:
        self.tell(f"loading {label}")
        known = self.pair.loaded(path) if path.suffix == ".xml" else None
        if known is not None and self.report.device is not None:
            self.report.failures += self.report.device.look_at(label, known)
        try:
            session, engine = load(path, known)
        except EngineError as error:
            twin = self.pair.worked_round(path)
            if twin is None:
                raise
            session, engine = load(twin)
            self._note_workarounds(label, f"fails ({shortened(str(error), 300)})")
        self.report.versions.append(Version(label, path, engine, files))
        return session

    def _stand_in(
        self, label: str, path: Path, files: tuple[FileFacts, ...], error: BridgeError
    ) -> Session | None:
        """The same model, rewritten by Bridge, for an ONNX model with operators that no engine has.
        None if Bridge cannot rewrite it."""
        if not isinstance(error, LacksOperatorError) or path.suffix == ".xml":
            return None
        try:
            if path != self.pair.source:
                return self._loaded(label, self.pair.in_standard_operators(path), files)
            session = self._loaded(_REWRITTEN, self.pair.stand_in(), files)
        except BridgeError:
            return None
        self._note(
            "no engine runs the original, so that it is run as Bridge rewrites it in operators of "
            "the standard: this shows that the conversions and the engines agree, not that Bridge "
            f"reads those operators rightly ({shortened(str(error), 300)})"
        )
        return session

    def _explore(
        self,
        base: Recipe,
        samples: int,
        budget: int,
        sessions: list[tuple[str, Session]],
        places: Sequence[Place],
    ) -> None:
        report, pair = self.report, self.pair
        model = pair.load(pair.source)
        restore_pairs(model)
        _, original = sessions[0]
        other = pair.loaded(report.versions[1].path)
        self.fixed = Fixed.of(model, other, pair.options.get("values") or {})
        self.fixed.shape(model)
        base = replace(base, values=self.fixed.values)
        irs = [version.path for version in report.versions if version.path.suffix == ".xml"]
        known = (States.of(pair.loaded(path), pair.loaded(pair.source)) for path in irs)
        states = next((found for found in known if found is not None), States.of_merged(model))
        # An input with a default here is drawn if another session needs the input.
        given = {port.name for _, session in sessions[1:] for port in session.inputs}
        given -= states.pairs.keys() if states is not None and states.own else set()
        model.defaults = {v: d for v, d in model.defaults.items() if given.isdisjoint(v.names)}
        drawn = model
        strict = states is not None and bool(states.own or pair.source.suffix == ".xml")
        if states is not None and strict and not states.own and other.format == "onnx":
            # Its operators say more about sizes that have to agree: OpenVINO does not check them.
            drawn = pair.load(report.versions[1].path)
            given |= {port.name for port in original.inputs}
            drawn.defaults = {v: d for v, d in drawn.defaults.items() if given.isdisjoint(v.names)}
        has_bodies = any(node.bodies for node in model.graph.nodes)
        layers = layers_with_bodies(irs[0]) if irs and has_bodies else None
        report.outline = outline(model, report.source, layers)
        _require_free(base, free_dimensions(drawn))
        _require_ranges(base.ranges, drawn)
        asked = base.sizes
        variables = () if states is None else states.own
        own = read_inputs(places, drawn, self.fixed.values, variables)
        if pair.against is not None:
            twin = pair.load(pair.against)
            restore_pairs(twin)
            base = replace(base, sizes=shared_sizes(model, twin) | dict(base.sizes))
        probes = _probes(with_sizes(model, base.sizes), pair.scratch)
        unasked = {key: size for key, size in base.sizes.items() if key not in asked}
        symbols = share_symbols(drawn)
        base = replace(base, sizes=shared(symbols, base.sizes))
        watched = pair.load(pair.source)
        sites = [] if self.quick else list(sites_of(watched).values())
        session, watched_file = original, pair.source
        if sites:
            try:
                instrument(watched)
                watched_file = pair.rewritten(pair.source, watched, "watched")
                session, _ = load(watched_file)
                report.sites = sites
            except BridgeError as error:
                report.notes.append(f"branches could not be watched: {shortened(str(error))}")
                sites, watched_file = [], pair.source
        survive = partial(self._survive, watched_file, model, not strict)
        agreed = session
        if strict:
            agreed = AgreedSession(session, [sessions[1][1]], self.comparison)
        exploration = explore(
            drawn, agreed, sites, base, samples, budget, probes, survive,
            lambda text: self.tell(f"seeking inputs: {text}"), own, states, session,
        )  # fmt: skip
        report.failures += exploration.failures
        report.row = exploration.row
        if exploration.no_row:
            self._note(
                "no calls in a row were made: the original takes none with empty states "
                f"({shortened(exploration.no_row)})"
            )
        report.feeds, report.recipes = exploration.feeds, exploration.recipes
        report.taken, report.reached = exploration.taken, exploration.reached
        report.unreachable = exploration.unreachable
        report.runs, report.refused = exploration.runs, dict(exploration.refused)
        if samples and not report.feeds:
            fitting: Mapping[str, int] = {}
            if not exploration.endless:
                self.tell("seeking sizes that fit")
                free = replace(base, sizes=shared(symbols, unasked))
                fitting = sizes_that_fit(model, session, free, asked, symbols)
            report.failures.append(_none_taken(exploration, fitting, free_dimensions(model)))
        if exploration.cut_short:
            self._note(
                f"the search for inputs ended after {SECONDS:g} s, so that branches may have been "
                "forced that an input can reach"
            )

    def _survive(
        self,
        watched: Path,
        model: Model,
        told: bool,
        recipes: Sequence[Recipe],
        feeds: Sequence[dict[str, Any]],
        taken: Sequence[dict[str, Any]],
    ) -> Sequence[int]:
        """The inputs without elements that all versions run. If another version than the first
        fails with one, a note says so."""
        if is_too_large(model) or self.quick:
            return ()
        self.tell("seeking inputs: without elements")
        files = [(version.label, version.path) for version in self.report.versions[1:]]
        ran, refused = tried([("", watched), *files], feeds, taken[:1])
        for place, why in refused.items() if told else ():
            self.report.asides.append(f"with {recipes[place]}, which the original takes, {why}")
        return ran

    def _note(self, text: str) -> None:
        if text not in self.report.notes:
            self.report.notes.append(text)

    def _compare(
        self,
        sessions: Sequence[tuple[str, Session]],
        feeds: Sequence[dict[str, Any]],
        given: frozenset[str],
    ) -> None:
        """Compares the outputs for all inputs. `given` are the inputs whose numbers a user chose.

        A difference with empty or extreme inputs alone is a note, and their branches are forced."""
        report = self.report
        (_, original), *others = sessions
        worst: dict[tuple[str, str], Result] = {}
        wanted = [original.run(feed) for feed in feeds]
        aside = [
            _broken_rank(original, results)
            or ("" if recipe.is_own or place in report.row else why_aside(feed, given))
            for place, (recipe, feed, results) in enumerate(
                zip(report.recipes, feeds, wanted, strict=True)
            )
        ]
        if all(aside):
            aside = [""] * len(feeds)
        found: dict[str, list[Row]] = {}
        excuses = Excuses(self.pair, self.comparison, report, self._note, self.tell)
        for label, session in others:
            self.tell(f"comparing {label}")
            rows = self._rows(original, session, feeds, wanted)
            if _are_bad(rows) and (twin := self._twin(label)):
                again = self._rows(original, twin, feeds, wanted)
                if not _are_bad(again):
                    rows = again
                    self._note_workarounds(label, "is wrong")
            found[label] = excuses.without(label, (original, session), rows, feeds, aside)
        is_ir = report.versions[0].path.suffix.lower() == ".xml"
        for sample in _out_of_range(found) if is_ir else ():
            aside[sample] = aside[sample] or (
                "an input with indices that are out of range, for which OpenVINO gives 0"
            )
        for label, rows in found.items():
            self._record(label, rows, aside, worst)
        self._record(_GIVEN, self._given_rows(original, wanted), aside, worst)
        report.results = list(worst.values())
        if not report.different and not self.quick:
            self.tell("running all as people do")
            kept = [place for place in range(len(feeds)) if not aside[place]]
            report.findings, report.as_run = as_people_run(
                report.versions, [session for _, session in sessions],
                [feeds[place] for place in kept],
                [wanted[place] for place in kept], self.comparison, self.pair,
            )  # fmt: skip
        self._call_in_a_row(sessions, wanted)
        self._doubt(aside)

    def _call_in_a_row(
        self, sessions: Sequence[tuple[str, Session]], wanted: Sequence[Results]
    ) -> None:
        """Compares stateful versions with the original in calls in a row. The versions keep the
        states between calls, and the original is fed these states."""
        row, original = self.report.row, sessions[0][1]
        for label, session in sessions if row and self.report.wrong.isdisjoint(row) else ():
            keeping = keeps_states(session)
            if keeping is None:
                continue
            self.tell(f"calling {label} in a row")
            feeds = [self.report.feeds[place] for place in row]
            try:
                found = keeping.run_row([self.comparison.renamed(f, session) for f in feeds])
            except EngineError as error:
                self.report.failures.append(
                    f"{label}, {len(row)} calls in a row: {shortened(str(error), 500)}"
                )
                continue
            wrong = (
                f"{label}, call {number} of {len(row)} in a row (input {place}): '{name}' is "
                f"{difference}; it is right where the states are set before the call"
                for number, (place, results) in enumerate(zip(row, found, strict=True), 1)
                for name, difference in self.comparison.differences(
                    wanted[place], self.comparison.aligned(original, session, results)
                )
                if not difference.ok and name not in self.comparison.random
            )
            self.report.failures += [*wrong][:1]

    def _record(
        self,
        label: str,
        rows: Sequence[Row],
        aside: Sequence[str],
        worst: dict[tuple[str, str], Result],
    ) -> None:
        """Records how a version compares, with the worst input for each output."""
        for sample, output, difference in rows:
            if isinstance(difference, EngineError):
                self._failed(label, sample, aside[sample], difference)
                continue
            if aside[sample] and not difference.ok:
                what = f"differs in '{output}' ({difference})"
                self._set_aside(label, sample, aside[sample], what)
                continue
            result = Result(label, output, difference, sample)
            if not difference.ok:
                self.report.wrong.add(sample)
                self.bad[sample] = "differs"
            known = worst.get((label, output))
            if known is None or _badness(difference) > _badness(known.worst):
                worst[label, output] = result

    def _given_rows(self, original: Session, wanted: Sequence[Results]) -> list[Row]:
        """How the original's outputs compare with the outputs that the user gave with an input."""
        rows: list[Row] = []
        for sample, recipe in enumerate(self.report.recipes):
            for name, value in (recipe.own.outputs if recipe.own else {}).items():
                ports = (p.name for p in original.outputs if name in {p.name, *p.aliases})
                known = next(ports, "")
                if recipe.is_own and known and known not in self.comparison.random:
                    difference = self.comparison.compared(known, value, wanted[sample][known])
                    rows.append((sample, known, difference))
        return rows

    def _rows(
        self,
        original: Session,
        session: Session,
        feeds: Sequence[dict[str, Any]],
        wanted: Sequence[Results],
    ) -> list[Row]:
        """How a version's outputs compare, by the number of the input and the name of the output.
        If the version fails with an input, its row has the error."""
        rows: list[Row] = []
        found = run_each(session, [self.comparison.renamed(feed, session) for feed in feeds])
        for sample, (expected, actual) in enumerate(zip(wanted, found, strict=True)):
            if isinstance(actual, EngineError):
                rows.append((sample, "", actual))
                continue
            judged = self.comparison.judged(original, session, feeds[sample], expected, actual)
            rows += [(sample, output, difference) for output, difference in judged]
        return rows

    def _twin(self, label: str) -> Session | None:
        """An IR for another device, with workarounds for the faults of the CPU plugin."""
        path = next(version.path for version in self.report.versions if version.label == label)
        try:
            twin = self.pair.worked_round(path)
            return None if twin is None else load(twin)[0]
        except BridgeError:
            return None

    def _note_workarounds(self, label: str, what: str) -> None:
        self._note(
            f"{label} {what} on the CPU plugin as it is, and right with what works round the "
            "faults of that plugin, which files for other devices do not have"
        )

    def _failed(self, label: str, sample: int, kind: str, error: EngineError) -> None:
        why = shortened(str(error), 500)
        if kind:
            self._set_aside(label, sample, kind, f"fails ({why})")
        else:
            self.report.failures.append(f"{label}, input {sample}: {why}")
            self.bad.setdefault(sample, "fails")
            self.failed.setdefault(label, sample)
            self._note_way_back(next(v.path for v in self.report.versions if v.label == label))

    def _set_aside(self, label: str, sample: int, kind: str, what: str) -> None:
        self.report.aside.add(sample)
        self._note(
            f"with input {sample} ({self.report.recipes[sample]}), which is {kind}, {label} "
            f"{what}; that counts only where there are no other inputs"
        )

    def _doubt(self, aside: Sequence[str]) -> None:
        """Forces branches that only empty or extreme inputs take, with other inputs. If the
        versions differ there, the branch counts as not reached."""
        report = self.report
        for branch in list(report.reached):
            takers = {place for place, taken in enumerate(report.taken) if branch in taken}
            if takers and all(aside[place] for place in takers):
                report.doubtful.add(branch)
            if takers and takers <= report.aside:
                number = report.reached.pop(branch)
                report.unreachable[branch] = (
                    f"input {number} alone takes it, which is {aside[number]} and differs"
                )

    def _force(self, missing: list[Branch]) -> None:
        """Forces the branches and numbers of iterations that no input reached, unless they are
        impossible."""
        sites, report = self.report.sites, self.report
        missing = [
            branch
            for branch in missing
            if not sites[branch[0]].loop
            or (sites[branch[0]].forcible and not {branch} & {*report.reached, *report.unreachable})
        ]
        there = missing
        if self.pair.against is not None:
            twins = matched_sites(*map(self.pair.loaded, (self.pair.source, self.pair.against)))
            shared = {site.index for node, site in twins.items() if is_forcible(node)}
            there = [branch for branch in missing if branch[0] in shared]
            gone = [b for b in missing if b[0] not in shared and not sites[b[0]].loop]
            if gone:
                self._account(gone)
        if there:
            self._force_both(there)

    def _account(self, gone: list[Branch]) -> None:
        """Explains why the other file may lack branches of Ifs. A conversion into its format prunes
        them, or the model itself cannot run them."""
        report, pair = self.report, self.pair
        assert pair.against is not None
        report.gone = {branch: pair.against.name for branch in gone}
        try:
            pair.convert_alike()
            switched = to_switch(report.sites, gone)
            model = pair.load(pair.source)
            instrument(model, switched, self._steered_nodes(model, switched))
            first, _ = load(pair.rewritten(pair.source, model, "alone"))
        except BridgeError as error:
            report.notes.append(f"branches could not be forced: {shortened(str(error))}")
            return
        alone = self._forced(gone, first, [], lambda *_: "")
        report.forced |= {result.branch: result for result in alone if result.problem}

    def _forced(
        self,
        branches: Sequence[Branch],
        first: Session,
        others: Sequence[tuple[str, Session]],
        differences: Callable[[Session, Results, Results, Results], str],
    ) -> list[Forced]:
        """The results of forcing branches. Inputs without elements are left out: an engine may
        crash in a branch that they do not take. Inputs that differ by themselves show nothing."""
        report = self.report
        whole = [place for place, feed in enumerate(report.feeds) if not is_empty(feed)]
        some = [place for place in whole if place not in report.aside] or whole
        return force(
            report.sites, branches, first, others, [report.feeds[place] for place in some],
            [report.taken[place] for place in some], differences, self.tell,
        )  # fmt: skip

    def _steered_nodes(self, model: Model, switched: Sequence[int]) -> dict[Node, Site]:
        """The nodes of the first model that are watched where these sites are forced."""
        watched = set(steered_sites(self.report.sites, switched))
        return {node: site for node, site in sites_of(model).items() if site in watched}

    def _force_both(self, missing: list[Branch]) -> None:
        """Forces branches in both models alike."""
        report = self.report
        switched = to_switch(report.sites, missing)
        try:
            mine, its = self._steered(switched)
            original, files = self.pair.changed("steered", mine, its)
            first, _ = load(original)
            others = [(label, load(path)[0]) for label, path in files]
        except BridgeError as error:
            report.notes.append(f"branches could not be forced: {shortened(str(error))}")
            return

        def different(session: Session, feed: Results, expected: Results, actual: Results) -> str:
            found = self.comparison.judged(first, session, feed, expected, actual)
            # The other model may lack some of the Ifs.
            told = (pair for pair in found if pair[0] != TAKEN or its is None)
            return "; ".join(f"'{name}': {d}" for name, d in told if not d.ok)

        found = self._forced(missing, first, others, different)
        report.forced |= {result.branch: result for result in found}

    def _steered(self, switched: Sequence[int]) -> tuple[Model, Model | None]:
        """Both models with switches at these Ifs. The second is None if it is converted from the
        first."""
        mine, its = self.pair.both()
        if switched:
            nodes = self._steered_nodes(mine, switched)
            if its is not None:
                twins = matched_sites(mine, its)
                instrument(its, switched, {n: s for n, s in twins.items() if s in nodes.values()})
            instrument(mine, switched, nodes)
        return mine, its

    def _mismatch(self) -> _Mismatch | None:
        """The first difference of an output, or else of a forced branch."""
        report = self.report
        for result in report.results:
            if not result.worst.ok and result.version != _GIVEN:
                allowed = self.comparison.allowed(result.output)
                return _Mismatch(result.version, report.feeds[result.sample], (), allowed)
        for branch, forced in report.forced.items():
            if forced.wrong and forced.given is not None and branch not in report.pruned:
                missing = [place for place in report.branches if place in report.forced]
                return _Mismatch(
                    forced.wrong[0], forced.given, tuple(to_switch(report.sites, missing)),
                    (report.rtol, report.atol),
                )  # fmt: skip
        return None

    def _explain(self, mismatch: _Mismatch) -> None:
        """Says where the models differ first, and who is at fault."""
        report, pair = self.report, self.pair
        if is_empty(mismatch.feed):
            report.first = (
                "the first value that differs is not sought: the input has no elements, with which "
                "some engines end the process"
            )
            return
        mine, its = self._steered(mismatch.switched)

        def shown(look: Look, other: Look) -> tuple[Session, Session]:
            self.tell("seeking the first difference")
            changed = clone_model(mine)
            expose(changed, *look)
            changed_too = None if its is None else clone_model(its)
            if changed_too is not None:
                expose(changed_too, *other)
            first, others = pair.changed("seen", changed, changed_too)
            return load(first)[0], load(labelled(others, mismatch.version))[0]

        first = first_difference(mine, its, shown, mismatch.feed, *mismatch.allowed)
        report.first = first
        if isinstance(first, FirstDifference):
            for version in report.versions:
                if version is report.versions[0] or version.label == mismatch.version:
                    found = neighbourhood(version.path, first.name, first.beside)
                    report.around[version.label] = found
        if self.small is not None:
            self._reduce(mismatch, (mine, its), shown, self.small)
        self.tell("seeking who is at fault")
        try:
            original, others = pair.changed("wrong", mine, its)
            disagreement = Disagreement(
                original, labelled(others, mismatch.version), mismatch.version, mismatch.feed,
                pair.against is None,
            )  # fmt: skip
            report.fault = judge(disagreement, self.comparison, pair.scratch)
        except BridgeError as error:
            report.fault = Fault("unknown", "", shortened(str(error)), "")

    def _reduce(
        self,
        mismatch: _Mismatch,
        models: tuple[Model, Model | None],
        load_shown: Callable[[Look, Look], tuple[Session, Session]],
        target: Path,
    ) -> None:
        """Writes the smallest part of the model that still differs."""
        assert self.report.first is not None
        comparison = Comparison(*mismatch.allowed, lambda note: None)

        def observe(mine: Look, its: Look, iterations: Sequence[int]) -> tuple[Results, Results]:
            self.tell("looking at values, to reduce the model")
            sessions = load_shown(mine, its)
            numbers = {last(depth): np.array(number) for depth, number in enumerate(iterations)}
            feed = {**mismatch.feed, **numbers}
            own, other = (session.run(comparison.renamed(feed, session)) for session in sessions)
            return own, other

        def differing(part: Model, other: Model | None, feed: Results) -> set[str]:
            self.tell(f"reducing the model: {len(part.graph.nodes)} nodes")
            try:
                original, files = self.pair.for_part(part).changed("part", part, other)
                first, second = load(original)[0], load(labelled(files, mismatch.version))[0]
                expected = first.run(feed)
                actual = second.run(comparison.renamed(feed, second))
                found = comparison.judged(first, second, feed, expected, actual)
            except BridgeError:
                return set()
            return {name for name, difference in found if not difference.ok}

        self.report.reduced = reduced(
            models, mismatch.feed, self.report.first, observe, differing, target
        )

    def _any_input(self, session: Session, base: Recipe) -> Results:
        """An input that the original takes, without values if a short search finds none."""
        found = explore(self.pair.load(self.pair.source), session, [], base, 1, 50, lambda _: None)
        return found.feeds[0] if found.feeds else {}

    def _reduce_failure(self, feed: Results, target: Path) -> None:
        """Writes the smallest part of the model's own graph that the original runs, and a failing
        version does not. The version may fail in its conversion, in loading or in running."""
        pair = self.pair
        mine, its = pair.both()

        def observe(look: Look, _: Look, iterations: Sequence[int]) -> tuple[Results, Results]:
            self.tell("looking at values, to reduce the model")
            shown = clone_model(mine)
            expose(shown, *look)
            return load(pair.rewritten(pair.source, shown, "seen"))[0].run(feed), {}

        def failing(part: Model, other: Model | None, feed: Results) -> set[str]:
            self.tell(f"reducing the model: {len(part.graph.nodes)} nodes")
            try:
                load(pair.rewritten(pair.source, part, "alone"))[0].run(feed)
            except BridgeError:
                return set()
            try:
                for label, path in pair.for_part(part).changed("part", part, other)[1]:
                    if label in self.failed or "" in self.failed:
                        session = load(path)[0]
                        session.run(self.comparison.renamed(feed, session))
            except BridgeError:
                return {*part.graph.output_names}
            return set()

        self.report.reduced = reduced((mine, its), feed, "", observe, failing, target)


@dataclass(frozen=True)
class _Mismatch:
    """A version that differs with an input by more than the `allowed` tolerances. The models have
    switches at these Ifs."""

    version: str
    feed: Results
    switched: tuple[int, ...]
    allowed: tuple[float, float]


def _broken_rank(original: Session, results: Results) -> str:
    """Names an output whose rank the original declares wrongly, "" if there is none. A conversion
    relies on the declared rank."""
    for port in original.outputs:
        value = results[port.name]
        if isinstance(value, np.ndarray) and port.shape and value.ndim != len(port.shape):
            return (
                f"an input for which the original gives '{port.name}' the rank {value.ndim}, not "
                f"{len(port.shape)}, which it declares"
            )
    return ""


def _out_of_range(found: Mapping[str, Sequence[Row]]) -> set[int]:
    """The inputs with an index of a Gather that onnxruntime refuses, if a version in OpenVINO
    agrees with the original."""
    refused = {
        sample
        for rows in found.values()
        for sample, _, result in rows
        if isinstance(result, EngineError) and "indices element out of data bounds" in str(result)
    }
    bad, good = set[int](), set[int]()
    for rows in found.values():
        for sample, _, result in rows:
            if not isinstance(result, EngineError):
                (good if result.ok else bad).add(sample)
    return (refused & good) - bad


def _are_bad(rows: Sequence[Row]) -> bool:
    return any(isinstance(found, EngineError) or not found.ok for _, _, found in rows)


_PROBED = 50_000  # nodes of all probes together
_PROBE = 5_000  # nodes of one


def _probes(model: Model, scratch: Path) -> Probes:
    """Cuts probes out of a model and loads them, as long as they stay small."""
    found = ways(model)
    left = _PROBED

    def probed(site: Site) -> tuple[Probe, Session] | None:
        nonlocal left
        cut = probe(model, *found[site.index], min(_PROBE, left))
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


def _pruned(sites: Sequence[Site], lines: Sequence[str]) -> dict[Branch, str]:
    """The branches that the conversion's report says it pruned, and why."""
    found: dict[Branch, str] = {}
    for site in (site for site in sites if not site.loop):
        where = re.sub(r" / (then|else)_branch(?= / )", "", site.where)
        for line in lines:
            match = re.fullmatch(re.escape(where) + r": its (then|else)_branch (.*)", line)
            if match:
                found[site.index, match[1] == "then"] = match[2]
    return found


def _badness(difference: Difference) -> tuple[bool, bool, bool, int, float]:
    ok, problem, random = difference.ok, bool(difference.problem), difference.random
    return (not ok, problem, random, difference.wrong, difference.absolute)


def _require_free(recipe: Recipe, free: Sequence[str]) -> None:
    """Raises UsageError for a size whose key is no open dimension of an input."""
    for key in recipe.sizes:
        name, _, axis = key.rpartition(".")
        if key not in free and not (axis.isdecimal() and f"{name}.*" in free):
            open = f"open are {', '.join(free)}" if free else "all of them are fixed"
            raise UsageError(f'"{key}" is no open dimension of the inputs; {open}')


def _none_taken(found: Exploration, fitting: Mapping[str, int], open: Sequence[str]) -> str:
    """Says that the model takes no input that was tried, why, and what to do."""
    reasons = found.refused.most_common(1)
    why = f" (mostly: {shortened(reasons[0][0], 300)})" if reasons else ""
    advice = "give it inputs of your own with --inputs"
    if found.endless:
        advice = "give a run more time with --timeout, or inputs of your own with --inputs"
    elif fitting:
        advice = "sizes that fit: " + " ".join(f"--size {k}={n}" for k, n in fitting.items())
    elif open:
        advice = f"give sizes that fit with --size: open are {', '.join(open)}"
    return f"no input was found that the model takes{why}; {advice}"


def _require_ranges(ranges: Ranges, model: Model) -> None:
    """Raises UsageError for a range without any number of the input's type."""
    known = {value.name: innermost(value.type).element for value in model.graph.inputs}
    for name, (lowest, highest) in ranges.items():
        if name not in known:
            raise UsageError(unknown("input", name, known))
        element = known[name]
        if element is None or element.kind not in ("bool", "int", "uint", "float"):
            raise UsageError(f'a range is for numbers; the input "{name}" is of {element}')
        if not element.is_float:
            lowest, highest = math.ceil(lowest), math.floor(highest)
        if not lowest <= highest:
            raise UsageError(f'the range of "{name}" has no number of {element} in it')


def _require_names(tolerances: Iterable[str], session: Session) -> None:
    """Raises UsageError for a tolerance whose name is no output."""
    names = [port.name for port in session.outputs]
    for name in tolerances:
        if name not in names:
            raise UsageError(unknown("output", name, names))
