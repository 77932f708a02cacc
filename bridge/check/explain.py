"""Explains a difference: where the models differ first, who is at fault, and the smallest part of
the model that still differs or fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bridge.check.aside import is_empty
from bridge.check.bench import Bench
from bridge.check.compare import Difference, compare, tolerance
from bridge.check.diagnosis.aligned import Aligned
from bridge.check.diagnosis.blame import Blame, Ran, blame
from bridge.check.diagnosis.forced import steer, to_switch
from bridge.check.diagnosis.neighbours import neighbourhood
from bridge.check.diagnosis.reduce import OpenOne, Reduced, reduce
from bridge.check.diagnosis.values import FirstDifference, clearest_difference
from bridge.check.engines import Session
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.outputs import Comparison, Results
from bridge.check.pair import Models, labelled
from bridge.check.results import GIVEN
from bridge.errors import BridgeError, amount
from bridge.neutral.graph import Model


@dataclass(frozen=True)
class _Mismatch:
    """A version that differs with an input by more than the `allowed` tolerances. The models have
    switches at these Ifs. `others` are inputs that take other branches, and differ, too."""

    version: str
    feed: Results
    switched: tuple[int, ...]
    allowed: tuple[float, float]
    others: tuple[Results, ...] = ()


def _first_mismatch(bench: Bench) -> _Mismatch | None:
    """The first difference of an output, or else of a forced branch."""
    report = bench.report
    for result in report.results:
        if not result.worst.ok and result.version != GIVEN:
            allowed = bench.comparison.allowed(result.output)
            first = report.taken[result.sample] if report.taken else frozenset()
            ways = {first: result.sample} | {
                report.taken[place]: place
                for place in sorted(report.wrong, reverse=True)
                if report.taken and report.taken[place] != first
            }
            _, *others = (report.feeds[place] for place in ways.values())
            return _Mismatch(
                result.version, report.feeds[result.sample], (), allowed, tuple(others)
            )
    for branch, forced in report.forced.items():
        if forced.wrong and forced.given is not None and branch not in report.pruned:
            missing = [place for place in report.branches if place in report.forced]
            return _Mismatch(
                forced.wrong[0], forced.given, tuple(to_switch(report.sites, missing)),
                (report.rtol, report.atol),
            )  # fmt: skip
    return None


def explain(bench: Bench, small: Path | None, failed: Mapping[str, int]) -> None:
    """Fills the report with the first difference and who is at fault. If the file `small` is named,
    writes the smallest part that still differs, or with which a version fails. `failed` has these
    versions, each with the number of an input."""
    report = bench.report
    mismatch = _first_mismatch(bench)
    if mismatch is not None and is_empty(mismatch.feed):
        report.first = (
            "the first value that differs is not sought: the input has no elements, with which "
            "some engines end the process"
        )
    elif mismatch is not None:
        _explain(bench, mismatch, small)
    elif small is not None and failed:
        feed = report.feeds[min(failed.values())]
        report.reduced = reduced_failure(bench, failed, feed, small)
    elif small is not None:
        report.reduced = "there is nothing to reduce: no number differs"


def _explain(bench: Bench, mismatch: _Mismatch, small: Path | None) -> None:
    """Says where the models differ first, and who is at fault."""
    report, pair = bench.report, bench.pair

    def tell() -> None:
        bench.tell("seeking the first difference")

    models = pair.both()
    if mismatch.switched:
        models = steer(models, mismatch.switched)
    rtol, atol = mismatch.allowed

    def equal(expected: Any, actual: Any) -> Difference:
        return compare(expected, actual, tolerance(expected, rtol), atol)

    opened = pair.opener(mismatch.version, tell)
    feeds = [mismatch.feed, *mismatch.others]
    number, first = clearest_difference(models, opened, feeds, equal)
    report.first, mismatch = first, replace(mismatch, feed=feeds[number])
    if isinstance(first, FirstDifference):
        for version in report.versions:
            if version is report.versions[0] or version.label == mismatch.version:
                found = neighbourhood(version.path, first.name, first.beside)
                report.around[version.label] = found
    if small is not None:
        report.reduced = _reduced(bench, mismatch, models, first, small)
    bench.tell("seeking who is at fault")
    try:
        report.fault = _blame(bench, mismatch, models)
    except BridgeError as error:
        report.fault = Blame("unknown", shortened(str(error)))


def _blame(bench: Bench, mismatch: _Mismatch, models: Models) -> Blame:
    pair, comparison, label = bench.pair, bench.comparison, mismatch.version
    paths = [pair.source, bench.report.path(label)]
    if mismatch.switched:
        original, others = pair.changed("wrong", *models)
        paths = [original, labelled(others, label)]
    ran: list[Ran] = []
    names: list[str] = []
    for path in paths:
        session, engine = load(path)
        names = names or [port.name for port in session.outputs]
        aligned = Aligned(session, names)
        aligned.run(mismatch.feed)  # Some engines are wrong in a first run only.
        ran.append(Ran(path, engine.split(" ")[0], aligned.run(mismatch.feed)))
    first, second = ran
    found = comparison.differences(first.results, second.results)
    wrong = {name for name, how in found if not how.ok} - comparison.random

    def differences(expected: Results, actual: Results) -> dict[str, Difference]:
        return {n: how for n, how in comparison.differences(expected, actual) if n in wrong}

    made = pair.against is None
    return blame(first, second, label, made, mismatch.feed, differences, pair.scratch)


def _reduced(
    bench: Bench,
    mismatch: _Mismatch,
    models: Models,
    first: FirstDifference | str,
    target: Path,
) -> Reduced | str:
    """Writes the smallest part of the model that still differs."""
    comparison = Comparison(*mismatch.allowed, lambda note: None)

    def differing(part: Model, other: Model | None, feed: Results) -> set[str]:
        bench.tell(f"reducing the model: {amount(len(part.graph.nodes), 'node')}")
        try:
            original, files = bench.pair.for_part(part).changed("part", part, other)
            first, second = load(original)[0], load(labelled(files, mismatch.version))[0]
            expected = first.run(feed)
            actual = second.run(comparison.renamed(feed, second))
            found = comparison.judged(first, second, feed, expected, actual)
        except BridgeError:
            return set()
        return {name for name, difference in found if not difference.ok}

    return reduce(models, mismatch.feed, first, _opener(bench), differing, target)


def _opener(bench: Bench) -> OpenOne:
    """Opens a change of the source, or else of the other file."""
    pair = bench.pair

    def opened(model: Model, is_first: bool) -> Session:
        bench.tell("looking at values, to reduce the model")
        path = pair.source if is_first else pair.against
        assert path is not None
        return Aligned(load(pair.rewritten(path, model, "seen"))[0])

    return opened


def reduced_failure(
    bench: Bench, failed: Mapping[str, int], feed: Results, target: Path
) -> Reduced | str:
    """Writes the smallest part of the model's own graph that the original runs, and a `failed`
    version does not. The version may fail in its conversion, in loading or in running."""
    pair = bench.pair

    def failing(part: Model, other: Model | None, feed: Results) -> set[str]:
        bench.tell(f"reducing the model: {amount(len(part.graph.nodes), 'node')}")
        try:
            load(pair.rewritten(pair.source, part, "alone"))[0].run(feed)
        except BridgeError:
            return set()
        try:
            for label, path in pair.for_part(part).changed("part", part, other)[1]:
                if label in failed or "" in failed:
                    session = load(path)[0]
                    session.run(bench.comparison.renamed(feed, session))
        except BridgeError:
            return {*part.graph.output_names}
        return set()

    return reduce(pair.both(), feed, "", _opener(bench), failing, target)
