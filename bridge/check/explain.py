"""Explains a difference: where the models differ first, who is at fault, and the smallest part of
the model that still differs or fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bridge.check.bench import Bench
from bridge.check.bisect import FirstDifference, Look, first_difference
from bridge.check.fault import Disagreement, Fault, judge
from bridge.check.force import to_switch
from bridge.check.forcing import steered
from bridge.check.inputs.recipe import is_empty
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.neighbourhood import neighbourhood
from bridge.check.outputs import Comparison, Results
from bridge.check.pair import Models, labelled
from bridge.check.reduce import Reduced, reduced
from bridge.check.results import GIVEN
from bridge.check.taps import expose, last
from bridge.errors import BridgeError, amount
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model


@dataclass(frozen=True)
class _Mismatch:
    """A version that differs with an input by more than the `allowed` tolerances. The models have
    switches at these Ifs."""

    version: str
    feed: Results
    switched: tuple[int, ...]
    allowed: tuple[float, float]


def _first_mismatch(bench: Bench) -> _Mismatch | None:
    """The first difference of an output, or else of a forced branch."""
    report = bench.report
    for result in report.results:
        if not result.worst.ok and result.version != GIVEN:
            allowed = bench.comparison.allowed(result.output)
            return _Mismatch(result.version, report.feeds[result.sample], (), allowed)
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

    models, shown = pair.seen_unchanged(mismatch.version, tell)
    if mismatch.switched:
        models = steered(bench, mismatch.switched)
        shown = pair.seen(models, mismatch.version, tell)
    first = first_difference(*models, shown, mismatch.feed, *mismatch.allowed)
    report.first = first
    if isinstance(first, FirstDifference):
        for version in report.versions:
            if version is report.versions[0] or version.label == mismatch.version:
                found = neighbourhood(version.path, first.name, first.beside)
                report.around[version.label] = found
    if small is not None:
        report.reduced = _reduced(bench, mismatch, models, first, small)
    bench.tell("seeking who is at fault")
    try:
        original, others = pair.changed("wrong", *models)
        disagreement = Disagreement(
            original, labelled(others, mismatch.version), mismatch.version, mismatch.feed,
            pair.against is None,
        )  # fmt: skip
        report.fault = judge(disagreement, bench.comparison, pair)
    except BridgeError as error:
        report.fault = Fault("unknown", "", shortened(str(error)), "")


def _reduced(
    bench: Bench,
    mismatch: _Mismatch,
    models: Models,
    first: FirstDifference | str,
    target: Path,
) -> Reduced | str:
    """Writes the smallest part of the model that still differs."""
    comparison = Comparison(*mismatch.allowed, lambda note: None)
    shown = bench.pair.seen(models, mismatch.version, lambda: bench.tell(_LOOKING))

    def observe(mine: Look, its: Look, iterations: Sequence[int]) -> tuple[Results, Results]:
        sessions = shown(mine, its)
        numbers = {last(depth): np.array(number) for depth, number in enumerate(iterations)}
        feed = {**mismatch.feed, **numbers}
        own, other = (session.run(comparison.renamed(feed, session)) for session in sessions)
        return own, other

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

    return reduced(models, mismatch.feed, first, observe, differing, target)


_LOOKING = "looking at values, to reduce the model"


def reduced_failure(
    bench: Bench, failed: Mapping[str, int], feed: Results, target: Path
) -> Reduced | str:
    """Writes the smallest part of the model's own graph that the original runs, and a `failed`
    version does not. The version may fail in its conversion, in loading or in running."""
    pair = bench.pair
    mine, its = pair.both()

    def observe(look: Look, _: Look, iterations: Sequence[int]) -> tuple[Results, Results]:
        bench.tell(_LOOKING)
        shown = clone_model(mine)
        expose(shown, *look)
        return load(pair.rewritten(pair.source, shown, "seen"))[0].run(feed), {}

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

    return reduced((mine, its), feed, "", observe, failing, target)
