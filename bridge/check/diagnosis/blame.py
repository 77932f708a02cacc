"""Who is at fault where a version of a model differs from the original, as far as runs show it.

A file says the same to each engine that has no fault. So further engines run both files with the
input:

- The original gives the version's numbers in an engine that ran neither file: two engines agree on
  it, and the engine of the original is at fault.
- The version gives its own wrong numbers in another engine: two engines agree on what it says, and
  the file is at fault; the conversion is, if it is what Bridge makes of the original.
- The version gives the original's numbers in an engine that ran neither file: the engine of the
  version is at fault.
- The version gives the original's numbers in the engine of the original: what it says is right, and
  one of the two engines is wrong. A third one decides, which runs the version or the original.

Numbers are equal by the rule of the check, and by nothing else. If no run shows who is at fault, or
runs contradict each other, it is not known.

An IR is read by Bridge as ONNX, layer by layer: neither its records nor its workarounds are undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Unpack

import onnx

import bridge
from bridge.check.compare import Results
from bridge.check.diagnosis.stages import Differences, Stage, first_wrong_stage, plain_onnx
from bridge.check.engines import Engine, EngineError, OnnxRuntime, OpenVino, Reference, Session
from bridge.check.engines.adapters import named_like
from bridge.check.engines.sessions import current, open_session
from bridge.check.files import read
from bridge.errors import BridgeError
from bridge.neutral.graph import size_of_constants
from bridge.options import OLDEST, ConvertOptions

_LARGEST = {Reference: 1 << 25, OnnxRuntime: 1 << 30}
"""Bytes of the constants of a model that engines run: one is slow, and an IR for the other is
written as ONNX."""


@dataclass(frozen=True)
class Ran:
    """A file, the session that ran it under the original's names, and its outputs."""

    path: Path
    session: Session
    results: Results

    @property
    def engine(self) -> str:
        """The name of the engine."""
        return self.session.engine.split(" ")[0]

    @property
    def is_ir(self) -> bool:
        """Whether it is an IR, and not ONNX."""
        return self.path.suffix.lower() == ".xml"


@dataclass(frozen=True)
class Blame:
    """`who` is "engine", "conversion", "file" or "unknown"; `engine` and `file` say which engine or
    file. `text` tells what was run, and `advice` what to do."""

    who: str
    text: str
    advice: str = ""
    engine: str = ""
    file: str = ""

    def __str__(self) -> str:
        who = {"engine": self.engine, "conversion": "the conversion", "file": self.file}
        return f"{who.get(self.who, 'not known')}: {self.text}"


def blame(
    original: Ran,
    version: Ran,
    label: str,
    made: bool,
    feeds: Sequence[Results],
    differences: Differences,
    scratch: Path,
) -> Blame:
    """Who is at fault that a version differs with the last of these inputs, which run in order.

    `made` says whether the check converted the original to it, `label` is what it is called.
    `differences` compares the outputs in which it is wrong, and no others. Files are written into
    the folder `scratch`."""
    judge = _Judge(original, version, label, made, feeds, differences, scratch)
    if judge.agree(original.results, version.results):
        return Blame("unknown", "the difference is not there in every run")
    found = [*judge.of_original()] or [*judge.of_version()]
    if len({(one.who, one.engine) for one in found}) > 1:
        texts = ", but ".join(one.text for one in found)
        return Blame("unknown", f"engines contradict each other: {texts}", _REPORT)
    return found[0] if found else judge.unknown()


@dataclass(frozen=True)
class _Reading:
    """How a file was run in another engine, and which of the two files gives these numbers, None if
    neither or both do."""

    engine: str
    how: str
    gives: Ran | None


@dataclass
class _Judge:
    original: Ran
    version: Ran
    label: str
    made: bool
    feeds: Sequence[Results]
    differences: Differences
    scratch: Path

    # The runs that show who is at fault.

    def of_original(self) -> Iterator[Blame]:
        """What further runs of the original show."""
        mine, label = self.original.engine, self.label
        if wrong := _first(self._readings_of_original, self.version, self.version.engine):
            why = f"the original, {wrong.how}, gives what {label} gives"
            yield Blame("engine", why, _to(mine), mine)
        elif self._comes_back():
            why = (
                f"{label}, converted back without what works round faults of engines, gives what "
                "the original gives, and with it does not"
            )
            advice = f"let Bridge make an IR of {label}, which works round the fault"
            yield Blame("engine", why, advice, mine)

    def of_version(self) -> Iterator[Blame]:
        """What further runs of the version show."""
        mine, its, label = self.original.engine, self.version.engine, self.label
        right = _first(self._readings_of_version, self.original, mine)
        third = _first(self._readings_of_original, self.original)
        wrong = _first(self._readings_of_version, self.version)
        same = next((one for one in self._readings_of_version if one.engine == mine), None)
        if same and same.gives is not self.original:
            same = None
        if right or (same and third):
            why = f"{label}, {(right or same).how}, gives what the original gives"  # type: ignore[union-attr]
            if third and not right:
                why += f", and so does the original, {third.how}"
            yield Blame("engine", why, self._older() or _to(its), its)
        if wrong and same:
            why = f"{label}, {wrong.how}, gives the same numbers, and {same.how} others"
            yield Blame("engine", why, _to(mine), mine)
        elif wrong:
            yield self._of_file(f"{label}, {wrong.how}, gives the same wrong numbers")
        elif self._is_made and self._stage:
            yield self._of_file("")

    def _of_file(self, why: str) -> Blame:
        """The blame of the file, or of the conversion that made it."""
        if self._is_made:
            stage = self._stage
            between = f"run as plain ONNX between its passes: {stage}" if stage else ""
            advice = [stage.advice] if stage and stage.advice else []
            text = "; ".join(filter(None, (why, between)))
            return Blame("conversion", text, ", and ".join([*advice, _REPORT]))
        advice_anew = ""
        if self.agree(self.original.results, self._anew):
            advice_anew = (
                "convert the original anew: what this version of Bridge makes of it is right; "
                f"{self.label} was made of another model, or changed"
            )
        return Blame("file", why, advice_anew, file=self.label)

    def unknown(self) -> Blame:
        """What is said where no run shows it."""
        if not self._readings_of_version:
            return Blame("unknown", f"no other engine runs {self.label}", _REPORT)
        one = self._readings_of_version[0]
        what = "what the original gives" if one.gives is self.original else "other numbers"
        why = f"{self.label}, {one.how}, gives {what}, and no further engine shows which are right"
        return Blame("unknown", why, _REPORT)

    # What is run for that.

    @cached_property
    def _readings_of_original(self) -> list[_Reading]:
        """The original in other engines. Where the version may be the ONNX that Bridge reads it as,
        such ONNX shows nothing."""
        if self.original.is_ir and not self.version.is_ir:
            return []
        return [*self._readings(self.original)]

    @cached_property
    def _readings_of_version(self) -> list[_Reading]:
        return [*self._readings(self.version)]

    def _readings(self, ran: Ran) -> Iterator[_Reading]:
        """The file in engines other than its own."""
        size = size_of_constants(read(ran.path).graph)
        kinds: tuple[type[Engine], ...] = (OnnxRuntime, Reference, OpenVino)
        for kind in kinds:
            as_onnx = ran.is_ir and kind is not OpenVino
            is_large = size > _LARGEST.get(kind, size) and (as_onnx or kind is Reference)
            if kind.name == ran.engine or is_large:
                continue
            how = f"as ONNX, run by {kind.name}" if as_onnx else f"run by {kind.name}"
            how = "read by OpenVINO itself" if kind is OpenVino else how
            with suppress(BridgeError):
                file = self._as_onnx(ran) if as_onnx else ran.path
                results = self._run(current().engine(kind).load(file))
                both = self.original, self.version
                alike = [one for one in both if self.agree(one.results, results)]
                yield _Reading(kind.name, how, alike[0] if len(alike) == 1 else None)

    def _as_onnx(self, ran: Ran) -> Path:
        target = self.scratch / f"{'original' if ran is self.original else 'version'}.read.onnx"
        if not target.exists():
            onnx.save(plain_onnx(read(ran.path)), target)
        return target

    def _run(self, session: Session) -> Results:
        named = named_like(self.original.session, session)
        if named.missing:
            raise EngineError("outputs are missing")
        *_, last = (named.run(feed) for feed in self.feeds)
        return last

    def agree(self, expected: Results, actual: Results | None) -> bool:
        """Whether results are alike in what is wrong in the version."""
        return actual is not None and all(
            how.ok for how in self.differences(expected, actual).values()
        )

    # What Bridge makes of the files.

    @property
    def _is_made(self) -> bool:
        return self.made or self.agree(self.version.results, self._anew)

    @cached_property
    def _anew(self) -> Results | None:
        """What Bridge makes of the original now, where the version has another format."""
        if self.original.is_ir == self.version.is_ir:
            return None
        return self._converted(self.original.path)

    @cached_property
    def _stage(self) -> Stage | None:
        """The pass or quirk after which the original gives what the version gives."""
        one, other = self.original, self.version
        if one.is_ir == other.is_ir:
            return None
        suffix = other.path.suffix.lower()
        return first_wrong_stage(
            one.path, suffix, self.feeds[-1], self.differences, one.session,
            one.results, other.results,
        )  # fmt: skip

    def _comes_back(self) -> bool:
        """Whether an ONNX version, as an IR in the engine of the original, agrees with the original
        without workarounds for faults of engines, and with itself with workarounds."""
        if not self.original.is_ir or self.version.is_ir:
            return False
        path = self.version.path
        plain = self._converted(path, device="ANY")
        return self.agree(self.original.results, plain) and self.agree(
            self.version.results, self._converted(path)
        )

    def _converted(self, path: Path, **options: Unpack[ConvertOptions]) -> Results | None:
        """The results of a file's conversion to the other format, None if it fails."""
        suffix = ".onnx" if path.suffix.lower() == ".xml" else ".xml"
        target = self.scratch / f"{path.stem}.{'-'.join(map(str, options.values()))}.anew{suffix}"
        try:
            bridge.convert(path, target, **options)
            return self._run(open_session(target))
        except BridgeError:
            return None

    def _older(self) -> str:
        """What to do if the engine is an old release and a conversion can avoid its faults."""
        if self.original.is_ir or not self.version.is_ir:
            return ""
        installed = ".".join(current().engine(OpenVino).version.split(".")[:2])
        for release in (installed, OLDEST):
            results = self._converted(self.original.path, openvino=release)
            if self.agree(self.original.results, results):
                return f"convert with --openvino {release}, which is right here"
        return ""


_REPORT = "report it to Bridge, with the model and the value that differs first"


def _to(engine: str) -> str:
    return f"report it to {engine} (`bridge ops --quirks` lists the faults that Bridge works round)"


def _first(readings: Sequence[_Reading], gives: Ran, without: str = "") -> _Reading | None:
    """The first that gives the numbers of this file, in another engine than that one."""
    found = (one for one in readings if one.gives is gives and one.engine != without)
    return next(found, None)
