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

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Unpack

import onnx

import bridge
from bridge.check.compare import Results
from bridge.check.diagnosis.aligned import Aligned
from bridge.check.diagnosis.stages import Differences, Stage, first_wrong_stage, plain_onnx
from bridge.check.engines import (
    Engine,
    EvaluatedOpenVino,
    OnnxRuntime,
    OpenVino,
    Reference,
    Session,
)
from bridge.check.engines.sessions import current, open_session
from bridge.check.files import read
from bridge.errors import BridgeError
from bridge.neutral.graph import size_of_constants
from bridge.options import OLDEST, ConvertOptions

_LARGEST: dict[type[Engine], int] = {Reference: 1 << 25, EvaluatedOpenVino: 1 << 24}
"""Bytes of the constants of a model that engines run which are slow."""

_LARGEST_READ = 1 << 30
"""The same for an IR that is read as ONNX, in memory."""

_KIN = {EvaluatedOpenVino.name}
"""OpenVINO's reference functions share with its plugins how a file is read: that both agree shows
nothing."""


@dataclass(frozen=True)
class Ran:
    """A file, the name of the engine that ran it, and its outputs under the original's names."""

    path: Path
    engine: str
    results: Results

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
    return _Judge(original, version, label, made, feeds, differences, scratch).judge()


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

    def judge(self) -> Blame:
        if self._agree(self.original.results, self.version.results):
            return Blame("unknown", "the difference is not there in every run")
        found = [*self._of_original()] or [*self._of_version()]
        if len({(one.who, one.engine) for one in found}) > 1:
            texts = ", but ".join(one.text for one in found)
            return Blame("unknown", f"engines contradict each other: {texts}", _REPORT)
        return found[0] if found else self._unknown()

    # The runs that show who is at fault.

    def _of_original(self) -> Iterator[Blame]:
        mine, its = self.original.engine, self.version.engine
        if wrong := _first(self._readings_of_original, self.version, {its}):
            why = f"the original, {wrong.how}, gives what {self.label} gives"
            yield Blame("engine", why, _engine_advice(mine), mine)
        elif self._comes_back():
            why = (
                f"{self.label}, converted back without what works round faults of engines, gives "
                "what the original gives, and with it does not"
            )
            advice = f"let Bridge make an IR of {self.label}, which works round the fault"
            yield Blame("engine", why, advice, mine)

    def _of_version(self) -> Iterator[Blame]:
        mine, its, label = self.original.engine, self.version.engine, self.label
        same = next((one for one in self._readings_of_version if one.engine == mine), None)
        is_same = same is not None and same.gives is self.original
        right = _first(self._readings_of_version, self.original, {mine})
        third = _first(self._readings_of_original, self.original, _KIN)
        wrong = _first(self._readings_of_version, self.version, _KIN)
        if right or (same and is_same and third):
            one = right or same
            why = f"{label}, {one.how}, gives what the original gives" if one else ""
            if third and not right:
                why += f", and so does the original, {third.how}"
            yield Blame("engine", why, self._older() or _engine_advice(its), its)
        if wrong and same and is_same:
            why = f"{label}, {wrong.how}, gives the same numbers, and {same.how} others"
            yield Blame("engine", why, _engine_advice(mine), mine)
        elif wrong:
            yield self._of_file(f"{label}, {wrong.how}, gives the same wrong numbers")
        elif self._is_made and self._stage:
            yield self._of_file("")

    def _of_file(self, why: str) -> Blame:
        """The blame of the file, or of the conversion that made it."""
        if not self._is_made:
            return Blame("file", why, self._anew_advice(), file=self.label)
        advice = ""
        if self._stage is not None:
            between = f"run as plain ONNX between its passes: {self._stage}"
            why, advice = f"{why}; {between}" if why else between, self._stage.advice
        if not advice and self._agree(self.original.results, self._converted(device="ANY")):
            advice = "convert with --device ANY, which is right here"
        return Blame("conversion", why, f"{advice}, and {_REPORT}" if advice else _REPORT)

    def _unknown(self) -> Blame:
        readings = self._readings_of_version
        if not readings:
            return Blame("unknown", f"no other engine runs {self.label}", _REPORT)
        one = readings[0]
        what = "what the original gives" if one.gives is self.original else "other numbers"
        why = f"{self.label}, {one.how}, gives {what}, and no further engine shows which are right"
        return Blame("unknown", why, _REPORT)

    # What is run for that.

    @cached_property
    def _readings_of_original(self) -> list[_Reading]:
        """The original in engines other than its own. Where the version may be the ONNX that Bridge
        reads it as, such ONNX shows nothing."""
        kinds: list[type[Engine]] = [Reference, OpenVino]
        if self.original.is_ir:
            kinds = [EvaluatedOpenVino]
            kinds += [OnnxRuntime, Reference] if self.version.is_ir else []
        mine = self.original.engine
        return [*self._readings(self.original.path, [k for k in kinds if k.name != mine])]

    @cached_property
    def _readings_of_version(self) -> list[_Reading]:
        """The version in engines other than its own."""
        kinds: list[type[Engine]] = [OnnxRuntime, Reference, OpenVino]
        if self.version.is_ir:
            kinds = [OnnxRuntime, Reference, EvaluatedOpenVino]
        its = self.version.engine
        return [*self._readings(self.version.path, [k for k in kinds if k.name != its])]

    def _readings(self, path: Path, kinds: list[type[Engine]]) -> Iterator[_Reading]:
        is_ir = path.suffix.lower() == ".xml"
        size = size_of_constants(read(path).graph)
        for kind in kinds:
            as_onnx = is_ir and not issubclass(kind, OpenVino)
            if size > _LARGEST.get(kind, _LARGEST_READ if as_onnx else size):
                continue
            how = f"as ONNX, run by {kind.name}" if as_onnx else f"run by {kind.name}"
            how = "read by OpenVINO itself" if kind is OpenVino else how
            with suppress(BridgeError):
                file = self._as_onnx(path) if as_onnx else path
                session = current().engine(kind).load(file)
                results = self._run(session)
                both = self.original, self.version
                alike = [ran for ran in both if self._agree(ran.results, results)]
                yield _Reading(kind.name, how, alike[0] if len(alike) == 1 else None)

    def _as_onnx(self, path: Path) -> Path:
        name = "original" if path == self.original.path else "version"
        target = self.scratch / f"{name}.read.onnx"
        if not target.exists():
            onnx.save(plain_onnx(read(path)), target)
        return target

    def _run(self, session: Session) -> Results:
        aligned = Aligned(session, [*self.original.results])
        *_, last = (aligned.run(feed) for feed in self.feeds)
        return last

    def _agree(self, expected: Results, actual: Results | None) -> bool:
        return actual is not None and all(
            how.ok for how in self.differences(expected, actual).values()
        )

    # What Bridge makes of the files.

    @cached_property
    def _is_made(self) -> bool:
        return self.made or self._agree(self.version.results, self._anew)

    @cached_property
    def _anew(self) -> Results | None:
        """What Bridge makes of the original now, where the version has another format."""
        return self._converted() if self.original.is_ir != self.version.is_ir else None

    @cached_property
    def _stage(self) -> Stage | None:
        """The pass or quirk after which the original gives what the version gives."""
        if self.original.is_ir == self.version.is_ir:
            return None
        results = self.original.results, self.version.results
        suffix = self.version.path.suffix.lower()
        return first_wrong_stage(
            self.original.path, suffix, self.feeds[-1], self.differences, *results
        )

    def _comes_back(self) -> bool:
        """Whether an ONNX version, as an IR in the engine of the original, agrees with the original
        without workarounds for faults of engines, and with itself with workarounds."""
        if not self.original.is_ir or self.version.is_ir:
            return False
        path = self.version.path
        plain = self._converted(path, device="ANY")
        return self._agree(self.original.results, plain) and self._agree(
            self.version.results, self._converted(path)
        )

    def _converted(
        self, path: Path | None = None, **options: Unpack[ConvertOptions]
    ) -> Results | None:
        """The results of a file's conversion to the other format, None if it fails."""
        path = path or self.original.path
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
            if self._agree(self.original.results, self._converted(openvino=release)):
                return f"convert with --openvino {release}, which is right here"
        return ""

    def _anew_advice(self) -> str:
        if self._agree(self.original.results, self._anew):
            return (
                "convert the original anew: what this version of Bridge makes of it is right; "
                f"{self.label} was made of another model, or changed"
            )
        return ""


_REPORT = "report it to Bridge, with the model and the value that differs first"


def _first(readings: list[_Reading], gives: Ran, without: Collection[str]) -> _Reading | None:
    """The first that gives the numbers of this file, without these engines."""
    found = (one for one in readings if one.gives is gives and one.engine not in without)
    return next(found, None)


def _engine_advice(engine: str) -> str:
    return (
        f"report it to {engine}; where an older release of it is right, stay with that "
        "(`bridge ops --quirks` lists the faults that conversions work round)"
    )
