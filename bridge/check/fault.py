"""Who is at fault where a version of a model differs from the original: an engine or the
conversion.

A file gives the same results in every correct engine. So another engine runs each of the two files.
An IR is run as an ONNX model of the same meaning, without workarounds for faults of engines.

- If the original then agrees with the version's first results, the original's engine is at fault.
- If the version then agrees with the original's first results, the version's engine is at fault.
- Otherwise the conversion is at fault.

If the check made the conversion itself, the graph is run after each pass before that. An ONNX
original is also computed in 64-bit floats, since correct engines may round differently. What is
within the original's own noise agrees with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack

import bridge
from bridge.check.engines import (
    Engine,
    OnnxRuntime,
    OpenVino,
    Reference,
    Session,
)
from bridge.check.exact import Exact, ExactModel
from bridge.check.loading import engine, load
from bridge.check.noise import Noise, load_noisy
from bridge.check.outputs import Comparison, Results
from bridge.check.pair import Pair
from bridge.check.stages import first_wrong_stage
from bridge.errors import BridgeError
from bridge.options import OLDEST, ConvertOptions

_FARTHER = 2.0  # times as far from the truth, to be at fault


@dataclass(frozen=True)
class Fault:
    """`who` is "engine", "conversion" or "unknown". `engine` is the name of the engine at fault.
    `text` gives the reason, and `advice` says what to do."""

    who: str
    engine: str
    text: str
    advice: str

    def __str__(self) -> str:
        who = {"engine": self.engine, "conversion": "the conversion", "unknown": "not known"}
        return f"{who[self.who]}: {self.text}"


@dataclass(frozen=True)
class Disagreement:
    """A file that differs from the original with an input. `label` is its name in the report.
    `made` says whether the check converted it itself."""

    original: Path
    version: Path
    label: str
    feed: Results
    made: bool


def judge(found: Disagreement, comparison: Comparison, pair: Pair) -> Fault:
    """Who is at fault. Files are written where those of the `pair` are."""
    return _Judge(found, comparison, pair).judge()


_Reading = tuple[str, str, Results]
"""An engine, how it ran a file, and the results."""


class _Judge:
    def __init__(self, found: Disagreement, comparison: Comparison, pair: Pair) -> None:
        self.found = found
        self.comparison = comparison
        self.pair, self.scratch = pair, pair.scratch
        self.session, engine = load(found.original)
        self.mine = engine.split(" ")[0]
        session, engine = load(found.version)
        self.its = engine.split(" ")[0]
        self.expected = self._run(self.session)
        self.actual = self._run(session)
        differences = comparison.differences(self.expected or {}, self.actual)
        wrong = {name for name, difference in differences if not difference.ok}
        self.wrong = wrong - comparison.random

    def judge(self) -> Fault:
        label, mine, its = self.found.label, self.mine, self.its
        if not self.wrong:
            return Fault("unknown", "", "the difference is not there in every run", "")
        if (far := self._far()) and far[0] > _FARTHER * far[1]:
            why = "it is farther from the original in wider floats"
            return Fault("engine", mine, why + self._figures, _engine_advice(mine))
        if not self._is_read_back():
            readings = [*self._readings(self.found.original, {mine, its})]
            if self._exact is not None:
                readings.append((self._exact.engine, str(self._exact), self._exact.results))
            for _, words, results in readings:
                if self._agree(results, self.actual):
                    why = f"the original, {words}, gives what {label} gives"
                    return Fault("engine", mine, why, _engine_advice(mine))
        found = self._wrong_stage() or self._of_version()
        return replace(found, text=found.text + self._figures)

    def _far(self) -> tuple[float, float] | None:
        """The largest differences of the original and of the version from the exact results."""
        exact = self._exact
        if exact is None or self.expected is None or self.actual is None:
            return None
        mine, its = (
            max(
                how.absolute
                for name, how in self.comparison.differences(exact.results, results)
                if name in self.wrong
            )
            for results in (self.expected, self.actual)
        )
        return mine, its

    @property
    def _figures(self) -> str:
        far = self._far()
        if far is None:
            return ""
        return (
            f" (from the original, {self._exact}, the original is off by {far[0]:.3g}, "
            f"{self.found.label} by {far[1]:.3g})"
        )

    def _wrong_stage(self) -> Fault | None:
        """The fault of a conversion that the check made, if one of its passes or quirks changes a
        number."""
        original, suffix = self.found.original, suffix_of(self.found.version)
        if not self._is_made or suffix == suffix_of(original):
            return None
        given = self.comparison, self.found.feed, self._is_noise
        stage = first_wrong_stage(original, suffix, *given)
        if stage is None or stage.output not in self.wrong:
            return None
        advice = f"{stage.advice}, and report it" if stage.advice else "report it"
        text = f"run as plain ONNX between its passes: {stage}"
        return Fault("conversion", "", text, f"{advice} to Bridge, with the model")

    def _of_version(self) -> Fault:
        """The fault that the results of the version in other engines show."""
        label, mine, its = self.found.label, self.mine, self.its
        readings = list(self._readings(self.found.version, {its}))
        agreeing = [one for one in readings if self._agree(one[2], self.expected)]
        others = [one for one in agreeing if one[0] != mine]
        if not others and self._is_read_back() and self._returns():
            why = (
                f"{label}, converted back without what works round faults of engines, gives what "
                "the original gives, and with it does not"
            )
            advice = f"let Bridge make an IR of {label}, which works round the fault"
            return Fault("engine", mine, why, advice)
        if agreeing:
            engine, words, _ = (others or agreeing)[0]
            why = f"{label}, {words}, gives what the original gives"
            if self._exact is not None and self._agree(self._exact.results, self.expected):
                why += f", and so does the original, {self._exact}"
            elif engine == mine:
                why += f" ({mine} ran both: where rounding decides, it may be what is off)"
            return Fault("engine", its, why, self._older() or _engine_advice(its))
        if not readings:
            return Fault("unknown", "", f"no other engine runs {label}", "")
        why = f"{label}, {readings[0][1]}, differs from the original, too"
        return Fault("conversion", "", why, self._advice())

    def _is_read_back(self) -> bool:
        """Whether the original is an IR and the version ONNX. Then the original as ONNX is the
        version itself, and to run it shows nothing new."""
        return suffix_of(self.found.original) == ".xml" and suffix_of(self.found.version) == ".onnx"

    def _returns(self) -> bool:
        """Whether the version as an IR agrees with the original without workarounds for faults of
        engines, and with itself, as ONNX, with workarounds."""
        plain = self._converted(self.found.version, "plain.xml", device="ANY")
        whole = self._converted(self.found.version, "whole.xml")
        return self._agree(plain, self.expected) and self._agree(whole, self.actual)

    def _readings(self, path: Path, others: set[str]) -> Iterator[_Reading]:
        """The results of a file in each engine that runs it. Engines in `others` are left out."""
        ways: list[tuple[type[Engine], str]] = [(OnnxRuntime, "as ONNX, run by onnxruntime")]
        if suffix_of(path) == ".xml":
            ways += [(Reference, "as ONNX, run by onnx.reference")]
        else:
            ways = [(Reference, "run by onnx.reference"), (OpenVino, "read by OpenVINO itself")]
        for kind, words in ways:
            if kind.name in others:
                continue
            try:
                file = self._as_onnx(path)
                results = self._run(engine(kind).load(file), kind is OpenVino)
            except BridgeError:
                continue
            if results is not None:
                yield kind.name, words, results

    @cached_property
    def _exact(self) -> Exact | None:
        """The results of the original that are nearest to the truth, if an engine has them."""
        return ExactModel(self.found.original, self.comparison, self.scratch).run(self.found.feed)

    @cached_property
    def _anew(self) -> Results | None:
        """The results of what Bridge makes of the original now."""
        suffix = suffix_of(self.found.version)
        return self._converted(self.found.original, f"anew{suffix}")

    @cached_property
    def _is_made(self) -> bool:
        """Whether the version is what Bridge makes of the original."""
        return self.found.made or self._agree(self._anew, self.actual)

    def _as_onnx(self, path: Path) -> Path:
        if suffix_of(path) == ".onnx":
            return path
        target = self.scratch / f"{path.stem}.read.onnx"
        if not target.exists():
            bridge.convert(path, target)
        return target

    def _converted(
        self, path: Path, name: str, **options: Unpack[ConvertOptions]
    ) -> Results | None:
        """The results of a file's conversion to the other format, None if it fails."""
        target = self.scratch / f"{path.stem}.{name}"
        try:
            bridge.convert(path, target, **options)
            return self._run(load(target)[0])
        except BridgeError:
            return None

    def _run(self, session: Session, twice: bool = True) -> Results | None:
        """The outputs under the original's names."""
        feed = self.comparison.renamed(self.found.feed, session)
        if twice:  # The check reports an output that is wrong in a first run only by itself.
            session.run(feed)
        results = session.run(feed)
        return self.comparison.aligned(self.session, session, results)

    def _agree(self, one: Results | None, other: Results | None) -> bool:
        """Whether the wrong outputs agree in these two results."""
        if one is None or other is None:
            return False
        found = self.comparison.differences(one, other)
        agree = all(difference.ok for name, difference in found if name in self.wrong)
        return agree or (other is self.expected and self._is_noise(one))

    def _is_noise(self, results: Results) -> bool:
        """Whether the wrong outputs are within the original's noise in these results."""
        if self._noise is None:
            return False
        try:
            return self._noise.explains(self._of_wrong(results))
        except BridgeError:
            return False

    @cached_property
    def _noise(self) -> Noise | None:
        """The noise of the original, if the original itself is in it."""
        if self.expected is None:
            return None
        with suppress(BridgeError):
            session = load_noisy(self.pair, self.found.original, "noisy-fault")
            if session is not None:
                noise = Noise(session, self.session, self.comparison, self.found.feed)
                return noise if noise.explains(self._of_wrong(self.expected)) else None
        return None

    def _of_wrong(self, results: Results) -> Results:
        return {name: value for name, value in results.items() if name in self.wrong}

    def _older(self) -> str:
        """What to do if the engine is an old release and a conversion can avoid its faults."""
        found = self.found
        if suffix_of(found.original) == ".onnx" and suffix_of(found.version) == ".xml":
            old = self._converted(found.original, "old.xml", openvino=OLDEST)
            if self._agree(old, self.expected):
                return (
                    f"convert with --openvino {OLDEST}, which is right here, or the release that "
                    "you have, or use a newer OpenVINO"
                )
        return ""

    def _advice(self) -> str:
        found = self.found
        suffix = suffix_of(found.version)
        if not self._is_made:
            if self._agree(self._anew, self.expected):
                return (
                    "convert the original anew: what this version of Bridge makes of it is right; "
                    f"{found.label} was made of another model, or changed"
                )
        elif suffix == ".xml" and suffix_of(found.original) == ".onnx":
            plain = self._converted(found.original, f"plain{suffix}", device="ANY")
            if self._agree(plain, self.expected):
                return "convert with --device ANY, which is right here, and report it to Bridge"
        return "report it to Bridge, with the model and the value that differs first"


def suffix_of(path: Path) -> str:
    """The suffix of a file."""
    return path.suffix.lower()


def _engine_advice(engine: str) -> str:
    return (
        f"report it to {engine}; where an older release of it is right, stay with that "
        "(`bridge ops --quirks` lists the faults that conversions work round)"
    )
