"""Differences that come from rounding, not from a fault of a conversion. Each becomes a note.

A version is right with an input if one of these holds:

- The version agrees with the original in 64-bit floats: the original's own engine rounds.
- The version is within the original's noise. If the results in 64-bit floats are known, they are
  within the version's noise, too. That is not asked if the version is outside its own noise.

Noise does not excuse a version that decides differently between exactly the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from bridge.check.bench import Bench
from bridge.check.bisect import FirstDifference, first_difference
from bridge.check.compare import Difference
from bridge.check.engines import EngineError, Session
from bridge.check.engines.sessions import ONE_THREAD, OPTIMISED
from bridge.check.exact import Exact, ExactModel
from bridge.check.loading import load, load_in_floats
from bridge.check.noise import Noise, load_noisy
from bridge.check.outputs import Results
from bridge.errors import BridgeError
from bridge.neutral.expression import OPPOSITES
from bridge.neutral.graph import Node

Row = tuple[int, str, Difference | EngineError]
"""The number of an input, the name of an output, and how it compares or why it is not there."""

_MOST = 32  # inputs of a version that are examined

_DECIDERS = frozenset({*OPPOSITES, "ArgMax", "ArgMin", "TopK", "Round", "Floor", "Ceil", "Sign"})
"""Operators that decide between numbers without rounding any."""


def without_excused(
    original: SharedOriginal, label: str, rows: list[Row], aside: Sequence[str]
) -> list[Row]:
    """The rows of a version. If an input has an excuse, its rows are right. An input that is
    set aside needs no excuse."""
    report = original.bench.report
    wrong = _wrong(rows, aside)
    if not wrong:
        return rows
    one = _Version(original, label)
    excused: dict[str, list[Row]] = {}
    for sample in wrong:
        some = [row for row in rows if row[0] == sample]
        try:
            why = one.excuse(sample)
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
class SharedOriginal:
    """The original of a check, which all versions share. It holds the results of each input by the
    number of the input: in floats, in 64 bits, and with noise."""

    bench: Bench

    def __post_init__(self) -> None:
        self.run = cache(self._run)
        self.exactly = cache(self._exactly)
        self.noise = cache(self._noise)

    @property
    def path(self) -> Path:
        """The file."""
        return self.bench.pair.source

    @cached_property
    def session(self) -> Session:
        """The file in the engine of its format."""
        return load_in_floats(self.path)

    @cached_property
    def exact(self) -> ExactModel:
        """The file in 64-bit floats."""
        return ExactModel(self.path, self.bench.comparison, self.bench.pair.scratch)

    @cached_property
    def otherwise(self) -> list[Session]:
        """The original in an engine with other settings, which may round differently."""
        found = []
        for settings in (ONE_THREAD, OPTIMISED):
            with suppress(BridgeError):
                found.append(load(self.path, settings=settings)[0])
        return found

    @cached_property
    def _noisy(self) -> Session | None:
        return load_noisy(self.bench.pair, self.path, "noisy")

    def _run(self, sample: int) -> Results:
        return self.session.run(self.bench.report.feeds[sample])

    def _exactly(self, sample: int) -> Exact | None:
        self.bench.tell("computing in 64 bits")
        return self.exact.run(self.bench.report.feeds[sample])

    def _noise(self, sample: int) -> Noise | None:
        """None if there is none. An engine may take another kernel for a model with noise: then the
        noise shows nothing."""
        if self._noisy is None:
            return None
        noise = self.noise_of(self._noisy, sample)
        nodes = self.bench.pair.loaded(self.path).graph.walk()
        # The original may choose any of equal elements, and its noisy form the first.
        chooses = any(node.op == "ir::TopK" and not node.attributes["stable"] for node in nodes)
        return noise if noise.explains(self.fixed(self.run(sample))) or chooses else None

    def noise_of(self, session: Session, sample: int) -> Noise:
        """The results of a noisy session for an input."""
        return Noise(session, self.session, self.bench.comparison, self.bench.report.feeds[sample])

    def fixed(self, results: Results) -> Results:
        """The results that are not random."""
        random = self.bench.comparison.random
        return {name: value for name, value in results.items() if name not in random}


@dataclass(eq=False)
class _Version:
    """One version, held to the original."""

    original: SharedOriginal
    label: str

    def __post_init__(self) -> None:
        self.bench = self.original.bench
        self.path = self.bench.report.path(self.label)
        self.session = load_in_floats(self.path)
        self._models, self._shown = self.bench.pair.seen_unchanged(
            self.label, lambda: self.bench.tell("seeking decisions")
        )

    def excuse(self, sample: int) -> str:
        """Why the version may differ with an input, "" for no reason."""
        original, comparison = self.original, self.bench.comparison
        found = self.session.run(comparison.renamed(self.bench.report.feeds[sample], self.session))
        actual = comparison.aligned(original.session, self.session, found)
        if actual is None:
            return ""
        if self._agree(original.run(sample), actual):
            return "differs only for what OpenVINO's kernels of 8 bits round: in floats it agrees"
        is_slow = original.exact.is_slow
        exact = None if is_slow else original.exactly(sample)
        if exact is None or not self._agree(exact.results, actual):
            self.bench.tell("running the original with noise")
            if self._is_noise(sample, actual, exact) and not self._decides_unlike(sample):
                return (
                    "differs within the original's own noise: the original itself differs so if "
                    "each float is off by two units in the last place"
                )
            exact = original.exactly(sample) if is_slow else None
        if exact is None or not self._agree(exact.results, actual):
            return ""
        return (
            "differs only for what the engine of the original rounds or chooses: the original, "
            f"{exact}, gives what {self.label} gives"
        )

    def _agree(self, one: Results, other: Results) -> bool:
        comparison = self.bench.comparison
        differences = comparison.differences(one, other)
        return all(how.ok or name in comparison.random for name, how in differences)

    def _is_noise(self, sample: int, actual: Results, exact: Exact | None) -> bool:
        original = self.original
        noise, fixed = original.noise(sample), original.fixed(actual)
        if noise is None or not noise.explains(fixed, original.otherwise):
            return False
        if exact is None or self._noisy is None:
            return True
        its = original.noise_of(self._noisy, sample)
        return its.explains(original.fixed(exact.results)) or not its.explains(fixed)

    @cached_property
    def _noisy(self) -> Session | None:
        return load_noisy(self.bench.pair, self.path, "noisy-too", wide=True)

    def _decides_unlike(self, sample: int) -> bool:
        """Whether a decision makes the first value that is not bit for bit the same."""
        if not any(map(_decides, self._models[0].graph.walk())):
            return False
        feed = self.bench.report.feeds[sample]
        first = first_difference(*self._models, self._shown, feed, 0.0, 0.0)
        return (
            isinstance(first, FirstDifference) and first.maker is not None and _decides(first.maker)
        )


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
