"""The results of the files in engines with their default settings: all optimisations, no hints.

A check changes these settings, so that it proves meaning. Here the files run a few inputs once
more. If a conversion differs more than the original in the same engine, it is a finding. Plugins
for GPU and NPU compute in 16-bit floats by default. There a difference is no finding if the
original differs so itself with each float rounded to 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from bridge.check.bench import Bench
from bridge.check.compare import Difference, compare
from bridge.check.engines import Engine, EngineError, Session
from bridge.check.engines.sessions import DEFAULTS
from bridge.check.loading import engine, load, plugin, running_on
from bridge.check.noise import outside
from bridge.check.noisy import make_noisy
from bridge.check.outputs import Comparison, Results
from bridge.check.pair import Pair
from bridge.check.results import Compared
from bridge.check.versions import Sessions
from bridge.errors import BridgeError
from bridge.vocabulary.elements import F16

_INPUTS = 3
_MORE_LOADS = 4
_SAMPLES = 16
_FEWER_BITS = "; OpenVINO may compute in fewer bits: INFERENCE_PRECISION_HINT=f32 prevents bf16"
_MORE = 3.0  # times the original's difference
_BF16 = 2.0**-6
"""The error of an engine that may compute in bf16: a few units in the last place of bf16."""


def run_as_people_do(bench: Bench, sessions: Sessions, compared: Compared) -> None:
    """Fills the report with the outputs that differ more in a conversion than in the original, and
    with the outputs that differ in both. A difference that the check itself found in a version does
    not count again."""
    report = bench.report
    kept = [place for place, why in enumerate(compared.aside) if not why][:_INPUTS]
    if report.different or not kept:
        return
    bench.tell("running all as people do")
    original, source = sessions[0][1], report.versions[0].path
    runs = Runs(
        original,
        [report.feeds[place] for place in kept],
        [compared.wanted[place] for place in kept],
        bench.comparison,
    )
    in_defaults = {is_ir: Original(source, is_ir, runs) for is_ir in (False, True)}
    halves = HalvedOriginal(runs, bench.pair) if plugin().halves else None
    for label, session in sessions[1:]:
        is_ir = report.path(label).suffix.lower() == ".xml"
        # OpenVINO keeps the cache of a variable in 8 bits by default. Inputs are no such cache.
        is_alike = not session.has_states or original.has_states
        plain = dict.fromkeys(kept, 0.0)
        for place, name, how in compared.rows.get(label, []):
            if place in plain and not isinstance(how, EngineError):
                share = _share(compared.wanted[place][name], how)
                plain[place] = max(plain[place], share)
        version = _Conversion(
            report.path(label),
            [*plain.values()],
            max(bench.comparison.rtol, _BF16 if is_ir else 0.0),
            in_defaults[is_ir] if is_alike else None,
            halves if is_ir else None,
        )
        text, is_more = version.judge(runs)
        # The results may differ from load to load: that is the engine's fault.
        for _ in range(_MORE_LOADS):
            if not is_more:
                break
            text, is_more = version.judge(runs)
        if is_more:
            report.findings.append(f"as people run it, {label} {text}")
        elif text:
            hint = _FEWER_BITS if is_ir else ""
            report.as_run.append(f"as people run it, {label} {text}{hint}")


@dataclass(frozen=True)
class _Conversion:
    """A conversion, by what shares it is off without the defaults, and what explains its
    differences."""

    path: Path
    plain: Sequence[float]
    least: float
    original: Original | None
    halves: HalvedOriginal | None

    def judge(self, runs: Runs) -> tuple[str, bool]:
        """Loads the conversion anew. Says how far it is off, and whether the original is not so
        far off. "" where it differs by nothing that counts."""
        results = runs.of(_loaded(self.path))
        its = runs.shares(results)
        if results is None or its is None or max(its) <= self.least:
            return "", False
        own = self.original.shares() if self.original else None
        text = f"differs by {100 * max(its):.2g} %"
        text += "" if own is None else f", and the original by {100 * max(own):.2g} %"
        why = self.halves.explain(results) if self.halves else ""
        is_more = (own is not None or self.halves is not None) and all(
            one > max(_MORE * max(others), self.least)
            for one, *others in zip(its, own or self.plain, self.plain, strict=True)
        )
        return (f"{text}, {why}" if why else text), is_more and not why


class Original:
    """The original in the defaults of OpenVINO, or of the engine of its own format."""

    def __init__(self, path: Path, in_openvino: bool, runs: Runs) -> None:
        self._path, self._in_openvino, self._runs = path, in_openvino, runs
        self._largest: list[float] | None = None

    def shares(self) -> list[float] | None:
        """The largest shares of all loads so far, with one load more. None where no engine takes
        the original."""
        found = self._runs.shares(self._runs.of(self._load()))
        if found is not None:
            self._largest = list(map(max, found, self._largest or found))
        return self._largest

    def _load(self) -> Session | None:
        is_ir = self._path.suffix.lower() == ".xml"
        if is_ir == self._in_openvino:
            return _loaded(self._path)
        if is_ir:
            return None
        try:
            return engine(cast(type[Engine], plugin()), DEFAULTS).load(self._path)
        except BridgeError:
            return None


@dataclass(frozen=True)
class Runs:
    """Runs of a few inputs, and how far their outputs are from the original's."""

    original: Session
    feeds: Sequence[Results]
    wanted: Sequence[Results]
    comparison: Comparison

    def of(self, session: Session | None) -> list[Results] | None:
        """The outputs under the original's names, with each input. None where one fails."""
        if session is None:
            return None
        try:
            return [
                self.comparison.aligned(self.original, session, session.run(feed)) or {}
                for feed in (self.comparison.renamed(feed, session) for feed in self.feeds)
            ]
        except BridgeError:
            return None

    def shares(self, results: Sequence[Results] | None) -> list[float] | None:
        """By what share of an output's largest number it differs, with each input; 0 within the
        tolerance."""
        if results is None:
            return None
        found = []
        for expected, actual in zip(self.wanted, results, strict=True):
            shares = (
                _share(value, compare(value, actual.get(name), *self.comparison.allowed(name)))
                for name, value in expected.items()
                if name not in self.comparison.random
            )
            found.append(max(shares, default=0.0))
        return found


class HalvedOriginal:
    """What the original gives with each float rounded to 16 bits, in its own engine."""

    def __init__(self, runs: Runs, pair: Pair) -> None:
        self._runs, self._pair = runs, pair

    def explain(self, results: Sequence[Results]) -> str:
        """Says that rounding explains the outputs. "" where it does not, or that does not show."""
        if self._session is None:
            return ""
        runs = self._runs
        try:
            for feed, actual in zip(runs.feeds, results, strict=True):
                samples = [self._session.run(feed) for _ in range(_SAMPLES)]
                for name, value in actual.items():
                    some = [sample[name] for sample in samples]
                    allowed = runs.comparison.allowed(name)
                    if name not in runs.comparison.random and _unlike(value, some, allowed):
                        return ""
        except BridgeError:
            return ""
        return "which is what the original gives with each float rounded to 16 bits"

    @cached_property
    def _session(self) -> Session | None:
        pair = self._pair
        try:
            model = pair.load(pair.source)
            make_noisy(model, F16, constants=True)
            with running_on("CPU"):
                return load(pair.rewritten(pair.source, model, "halves"))[0]
        except BridgeError:
            return None


def _loaded(path: Path) -> Session | None:
    try:
        return load(path, settings=DEFAULTS)[0]
    except BridgeError:
        return None


def _unlike(value: Any, samples: Sequence[Any], allowed: tuple[float, float]) -> int:
    """How many elements the samples do not explain. An element that is not finite in one of them
    overflows in 16 bits, or does not: it may be anything."""
    alike = [one for one in samples if np.shape(one) == np.shape(value)]
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not alike:
        return outside(value, samples, *allowed)
    seen = np.isfinite(alike).all(axis=0)
    return outside(value[seen], [one[seen] for one in alike], *allowed)


def _share(expected: Any, difference: Difference) -> float:
    """By what share of the largest expected number another value differs, 0 if that says
    nothing."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind in "OSUbc" or not expected.size:
        return 0.0
    largest = float(np.abs(expected.astype(np.float64)).max())
    if difference.ok or difference.problem or not 0 < largest < np.inf:
        return 0.0
    return difference.absolute / largest
