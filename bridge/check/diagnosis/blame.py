"""Who is at fault where a version of a model differs from the original, as far as runs show it.

A file says the same to each engine that has no fault. So further engines run both files with the
input:

- The original gives the version's numbers in an engine that ran neither file: two engines agree on
  it, and the engine of the original is at fault.
- The version gives its own wrong numbers in another engine: two engines agree on what it says, and
  the file is at fault; the conversion is, if it is what Bridge makes of the original. That shows
  nothing if the reference gives other numbers still for the original.
- The version gives the original's numbers in an engine that ran neither file: the engine of the
  version is at fault.
- The version gives the original's numbers in the engine of the original: what it says is right, and
  one of the two engines is wrong. A third one decides, which runs the version or the original.

Numbers are equal by the rule of the check, and by nothing else. If no run shows who is at fault, or
runs contradict each other, it is not known.

An IR is read by Bridge as ONNX, layer by layer: neither its records nor its workarounds are undone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Unpack

import onnx

import bridge
from bridge.check.compare import Difference, Results
from bridge.check.diagnosis.stages import plain_onnx
from bridge.check.engines import Engine, EngineError, OnnxRuntime, OpenVino, Reference, Session
from bridge.check.engines.adapters import named_like
from bridge.check.engines.sessions import Sessions
from bridge.check.files import read
from bridge.errors import BridgeError
from bridge.neutral.graph import size_of_constants
from bridge.options import OLDEST, ConvertOptions

_LARGEST = {Reference: 1 << 25, OnnxRuntime: 1 << 30}
"""Bytes of the constants of a model that engines run: one is slow, and an IR for the other is
written as ONNX."""

Differences = Callable[[Results, Results], Mapping[str, Difference]]
"""How outputs compare with those that are expected, which are first."""


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
    sessions: Sessions,
) -> Blame:
    """Who is at fault that a version differs with the last of these inputs, which run in order.

    `made` says whether the check converted the original to it, `label` is what it is called.
    `differences` compares the outputs in which it is wrong, and no others. Files are written into
    the folder `scratch`, and opened by `sessions`."""
    judge = _Judge(original, version, label, made, feeds, differences, scratch, sessions)
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
    sessions: Sessions

    # The runs that show who is at fault.

    def of_original(self) -> Iterator[Blame]:
        """What further runs of the original show."""
        mine, label = self.original.engine, self.label
        wrong = _first(self._readings_of_original, self.version, self.version.engine)
        if wrong:
            why = f"the original, {wrong.how}, gives what {label} gives"
            if (wrong.engine, self.version.engine) == (Reference.name, OpenVino.name):
                why = f"the reference and OpenVINO agree: {why}"
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
        if shown := right or (same if third else None):
            why = f"{label}, {shown.how}, gives what the original gives"
            if third and not right:
                why += f", and so does the original, {third.how}"
            yield Blame("engine", why, self._older() or _to(its), its)
        if wrong and same:
            why = f"{label}, {wrong.how}, gives the same numbers, and {same.how} others"
            yield Blame("engine", why, _to(mine), mine)
        elif wrong and not self._disputed:
            yield self._of_file(f"{label}, {wrong.how}, gives the same wrong numbers")

    def _of_file(self, why: str) -> Blame:
        """The blame of the file, or of the conversion that made it."""
        path = self.original.path
        crosses = self.original.is_ir != self.version.is_ir
        anew = self._converted(path) if crosses and not self.made else None
        if self.made or self._agrees(self.version, anew):
            avoids = crosses and self._right_with(path, device="ANY")
            advice = "convert with --device ANY, which is right here, and " if avoids else ""
            return Blame("conversion", why, advice + _REPORT)
        advice = ""
        if self._agrees(self.original, anew):
            advice = (
                "convert the original anew: what this version of Bridge makes of it is right; "
                f"{self.label} was made of another model, or changed"
            )
        return Blame("file", why, advice, file=self.label)

    def unknown(self) -> Blame:
        """What is said where no run shows it."""
        if self._disputed:
            why = f"the original, {self._disputed.how}, gives neither its own nor {self.label}'s"
            return Blame("unknown", f"{why} numbers", _REPORT)
        if not self._readings_of_version:
            return Blame("unknown", f"no other engine runs {self.label}", _REPORT)
        one = self._readings_of_version[0]
        what = "what the original gives" if one.gives is self.original else "other numbers"
        why = f"{self.label}, {one.how}, gives {what}, and no further engine shows which are right"
        return Blame("unknown", why, _REPORT)

    # What is run for that.

    @property
    def _disputed(self) -> _Reading | None:
        """The original in the reference, if that has it neither way: then no run of the version
        shows whether its own engine is right."""
        some = (one for one in self._readings_of_original if one.engine == Reference.name)
        return next((one for one in some if one.gives is None), None)

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
                results = self._run(self.sessions.engine(kind).load(file))
                both = self.original, self.version
                alike = [one for one in both if self._agrees(one, results)]
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

    def _agrees(self, ran: Ran, results: Results | None) -> bool:
        """Whether results are those of a file in what is wrong in the version."""
        return results is not None and all(
            how.ok for how in self.differences(ran.results, results).values()
        )

    def _right_with(self, path: Path, **options: Unpack[ConvertOptions]) -> bool:
        """Whether a file, converted so, gives what the original gives."""
        return self._agrees(self.original, self._converted(path, **options))

    def _converted(self, path: Path, **options: Unpack[ConvertOptions]) -> Results | None:
        """The results of a file's conversion to the other format, None if it fails."""
        suffix = ".onnx" if path.suffix.lower() == ".xml" else ".xml"
        target = self.scratch / f"{path.stem}.{'-'.join(map(str, options.values()))}.anew{suffix}"
        try:
            bridge.convert(path, target, **options)
            return self._run(self.sessions.open(target))
        except BridgeError:
            return None

    def _comes_back(self) -> bool:
        """Whether an ONNX version, as an IR in the engine of the original, gives what the original
        gives without workarounds for faults of engines, and what it gives itself with them."""
        path = self.version.path
        return (
            self.original.is_ir
            and not self.version.is_ir
            and self._right_with(path, device="ANY")
            and self._agrees(self.version, self._converted(path))
        )

    def _older(self) -> str:
        """What to do if the engine is an old release and a conversion can avoid its faults."""
        if self.original.is_ir or not self.version.is_ir:
            return ""
        installed = ".".join(self.sessions.engine(OpenVino).version.split(".")[:2])
        for release in (installed, OLDEST):
            if self._right_with(self.original.path, openvino=release):
                return f"convert with --openvino {release}, which is right here"
        return ""


_REPORT = "report it to Bridge, with the model and the value that differs first"


def _to(engine: str) -> str:
    return f"report it to {engine} (`bridge ops --quirks` lists the faults that Bridge works round)"


def _first(readings: Sequence[_Reading], gives: Ran, without: str = "") -> _Reading | None:
    """The first that gives the numbers of this file, in another engine than that one."""
    found = (one for one in readings if one.gives is gives and one.engine != without)
    return next(found, None)
