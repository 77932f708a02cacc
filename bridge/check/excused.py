"""Differences that are no fault of a conversion, but rounding. Each becomes a note with its figure.

A version is right with an input if one of these holds:

- The version agrees with the original in 64-bit floats: the original's own engine rounds.
- The version is within the original's noise. If the results in 64-bit floats are known, they are
  within the version's noise, too, or that has not even the version in it.

Noise does not excuse a version that decides differently between exactly the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import bridge
from bridge.check.bench import Bench
from bridge.check.bisect import FirstDifference, first_difference
from bridge.check.compare import Difference
from bridge.check.engines import EngineError, Session
from bridge.check.exact import HALVES_WIDER, Exact, ExactModel, WideSession, widen
from bridge.check.loading import IN_FLOATS, ONE_THREAD, OPTIMISED, PLAIN, load
from bridge.check.noise import Noise, make_noisy
from bridge.check.outputs import Results
from bridge.check.parts import is_too_large
from bridge.errors import BridgeError
from bridge.neutral.clone import clone_model
from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Node, size_of_constants

Row = tuple[int, str, Difference | EngineError]
"""The number of an input, the name of an output, and how it compares or why it is not there."""

_MOST = 32  # inputs of a version that are examined
_LARGEST = 1 << 28  # bytes of constants in a model that is run with noise

_DECIDERS = frozenset({*OPPOSITES, "ArgMax", "ArgMin", "TopK", "Round", "Floor", "Ceil", "Sign"})
"""Operators that decide between numbers without rounding any."""


def without_excused(bench: Bench, label: str, rows: list[Row], aside: Sequence[str]) -> list[Row]:
    """The rows of a version. If an input has an excuse, its rows are right. An input that is
    set aside needs no excuse."""
    report = bench.report
    wrong = _wrong(rows, aside)
    if not wrong:
        return rows
    one = _Version(bench, label)
    excused: dict[str, list[Row]] = {}
    for sample in wrong:
        some = [row for row in rows if row[0] == sample]
        try:
            why = one.excuse(report.feeds[sample])
        except BridgeError:
            break
        if why:
            excused.setdefault(why, []).extend(some)
    for why, some in excused.items():
        first, *others = sorted({sample for sample, _, _ in some})
        named = f"input {first} ({report.recipes[first]})"
        if others:
            *before, last = first, *others
            named = f"inputs {', '.join(map(str, before))} and {last}"
        report.note(f"with {named}, {label} {why} (by {max(_largest(some)):.3g} at most)")
        rows = [row for row in rows if row[0] not in (first, *others)] + [
            (sample, name, replace(how, ok=True))
            for sample, name, how in some
            if not isinstance(how, EngineError)
        ]
    return rows


@dataclass(eq=False)
class _Version:
    """One version, held to the original."""

    bench: Bench
    label: str

    def __post_init__(self) -> None:
        pair, comparison = self.bench.pair, self.bench.comparison
        self.path = self.bench.report.path(self.label)
        self.original, self.session = _loaded(pair.source), _loaded(self.path)
        self._exact = ExactModel(pair.source, comparison, pair.scratch)
        self._noisy = cache(self._load_noisy)
        self._models, self._shown = pair.seen_unchanged(
            self.label, lambda: self.bench.tell("seeking decisions")
        )

    def excuse(self, feed: dict[str, Any]) -> str:
        """Why the version may differ with an input, "" for no reason."""
        comparison, tell = self.bench.comparison, self.bench.tell
        found = self.session.run(comparison.renamed(feed, self.session))
        actual = comparison.aligned(self.original, self.session, found)
        expected = self.original.run(feed)
        if actual is None:
            return ""
        if self._agree(expected, actual):
            return "differs only for what OpenVINO's kernels of 8 bits round: in floats it agrees"
        exact = None if self._exact.is_slow else self._exactly(feed)
        if exact is None or not self._agree(exact.results, actual):
            tell("running the original with noise")
            if self._is_noise(feed, expected, actual, exact) and not self._decides_unlike(feed):
                return (
                    "differs within the original's own noise: the original itself differs so if "
                    "each float is off by two units in the last place"
                )
            exact = self._exactly(feed) if self._exact.is_slow else None
        if exact is None or not self._agree(exact.results, actual):
            return ""
        return (
            "differs only for what the engine of the original rounds or chooses: the original, "
            f"{exact}, gives what {self.label} gives"
        )

    def _exactly(self, feed: Results) -> Exact | None:
        self.bench.tell("computing in 64 bits")
        return self._exact.run(feed)

    def _agree(self, one: Results, other: Results) -> bool:
        comparison = self.bench.comparison
        differences = comparison.differences(one, other)
        return all(how.ok or name in comparison.random for name, how in differences)

    def _is_noise(
        self, feed: Results, expected: Results, actual: Results, exact: Exact | None
    ) -> bool:
        noisy = self._noisy(False)
        if noisy is None:
            return False
        noise = self._noise(noisy, feed)
        # An engine may take another kernel for a model with noise: then the noise shows nothing.
        if not noise.explains(self._fixed(expected)) and not self._chooses():
            return False
        if not noise.explains(self._fixed(actual), self._otherwise):
            return False
        its = None if exact is None else self._noisy(True)
        if exact is None or its is None:
            return True
        noise = self._noise(its, feed)
        return noise.explains(self._fixed(exact.results)) or not noise.explains(self._fixed(actual))

    def _chooses(self) -> bool:
        """Whether the original may choose any of equal elements, and its noisy form the first."""
        nodes = self.bench.pair.loaded(self.bench.pair.source).graph.walk()
        return any(node.op == "ir::TopK" and not node.attributes["stable"] for node in nodes)

    def _fixed(self, results: Results) -> Results:
        random = self.bench.comparison.random
        return {name: value for name, value in results.items() if name not in random}

    def _noise(self, session: Session, feed: Results) -> Noise:
        return Noise(session, self.original, self.bench.comparison, feed)

    @cached_property
    def _otherwise(self) -> list[Session]:
        """The original in an engine with other settings, which may round differently."""
        found = []
        for settings in (ONE_THREAD, OPTIMISED):
            with suppress(BridgeError):
                found.append(load(self.bench.pair.source, settings=settings)[0])
        return found

    def _load_noisy(self, its: bool) -> Session | None:
        """The original, or if `its` the version, with noise; None if it is large. A version has
        16-bit floats in 32 bits, so that it has no noise of 16 bits."""
        pair = self.bench.pair
        path, name = (self.path, "noisy-too") if its else (pair.source, "noisy")
        before, model = pair.loaded(path), pair.load(path)
        if size_of_constants(model.graph) > _LARGEST:
            return None
        wider = HALVES_WIDER if its and widen(model, HALVES_WIDER) else {}
        try:
            noisy = clone_model(model)
            make_noisy(noisy, constants=True)
            file = pair.rewritten(path, noisy, name)
            if its and is_too_large(bridge.load(file)):
                return None
            session = _loaded(file)
        except BridgeError:  # An engine may want constants.
            make_noisy(model)
            session = _loaded(pair.rewritten(path, model, name))
        return WideSession(session, wider, before) if wider else session

    def _decides_unlike(self, feed: Results) -> bool:
        """Whether a decision makes the first value that is not bit for bit the same."""
        first = first_difference(*self._models, self._shown, feed, 0.0, 0.0)
        return (
            isinstance(first, FirstDifference) and first.maker is not None and _decides(first.maker)
        )


def _loaded(path: Path) -> Session:
    """A file in the engine of its format. OpenVINO computes quantised models in floats."""
    is_ir = path.suffix.lower() == ".xml"
    return load(path, settings=IN_FLOATS if is_ir else PLAIN)[0]


def _decides(node: Node) -> bool:
    """Whether a node decides between numbers without rounding, or passes on such a decision."""
    given = node.inputs[0] if node.inputs else None
    is_whole = given is not None and given.element is not None and not given.element.is_float
    return node.op in _DECIDERS or (node.op in ("Cast", "Not", "Where") and is_whole)


def _largest(rows: Sequence[Row]) -> list[float]:
    return [how.absolute for _, _, how in rows if not isinstance(how, EngineError)]


def _wrong(rows: Sequence[Row], aside: Sequence[str]) -> list[int]:
    """The inputs with which numbers differ. Inputs that are set aside are left out."""
    failed = {
        sample
        for sample, _, how in rows
        if isinstance(how, EngineError) or (how.random and not how.ok)
    }
    wrong = {sample for sample, _, how in rows if not isinstance(how, EngineError) and not how.ok}
    return sorted(sample for sample in wrong - failed if not aside[sample])[:_MOST]
