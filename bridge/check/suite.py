"""The versions of a model that a check compares, each opened by an engine, and how the same change
is made to all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import bridge
from bridge.check.device import RAN_ON, DeviceCheck, for_device, is_elsewhere
from bridge.check.engines import LacksOperatorError, OpenVino, Session
from bridge.check.engines.remote import start
from bridge.check.engines.sessions import Sessions
from bridge.check.files import FileFacts, facts, name_of, read
from bridge.check.prepare import Files, prepared
from bridge.check.request import Request
from bridge.check.specialized import Fixed
from bridge.errors import BridgeError, UsageError, shortened
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Model
from bridge.options import ConvertOptions, release_number
from bridge.records.state import STATEFUL
from bridge.targets.wide_integers import wide_integers
from bridge.targets.written_for import NEWEST, WRITTEN_FOR

CONVERSION = "conversion: "
"""What begins the failure of a conversion."""

ORIGINAL = "original"
"""The label of the version that the others are held to."""

_KINDS = {".onnx": "ONNX", ".xml": "IR"}

Models = tuple[Model, Model | None]
"""The original's model, and the other file's; None if the other is converted from the original."""


@dataclass(frozen=True)
class Variant:
    """One version of the model, and the engine that opened it. `label` says where it comes from.
    `path` is the file; an engine may have opened a form of it, `opened`."""

    label: str
    path: Path
    opened: Path
    engine: str
    session: Session = field(repr=False)
    files: tuple[FileFacts, ...] = ()

    @property
    def is_ir(self) -> bool:
        """Whether the version is an IR."""
        return self.path.suffix.lower() == ".xml"


@dataclass(frozen=True)
class Failure:
    """A version that did not convert or load. `label` is "" for a conversion."""

    label: str
    text: str


@dataclass
class Suite:
    """All versions, and the owner of their sessions.

    The first of `variants` is the original, to which the others are held; there is none if it could
    not be opened. `failures` are the versions that are missing. `pruned` are the branches that
    conversions removed. `wide` names integers that OpenVINO alone computes in 32 bits. `told` and
    `notes` are for the report's first line and for its notes. All of it is found when the versions
    are opened, and does not change later."""

    files: Files
    scratch: Path
    sessions: Sessions
    device: DeviceCheck | None
    variants: list[Variant] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    pruned: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fixed: Fixed = field(default_factory=Fixed)
    wide: tuple[str, ...] = ()

    @property
    def original(self) -> Variant:
        """The version that the others are held to."""
        return self.variants[0]

    @property
    def others(self) -> list[Variant]:
        """The other versions."""
        return self.variants[1:]

    @property
    def is_pair(self) -> bool:
        """Whether two files were given."""
        return self.files.other is not None

    @property
    def readable(self) -> bool:
        """Whether Bridge reads the original: an engine may open one that Bridge does not."""
        try:
            return bool(read(self.original.opened))
        except BridgeError:
            return False

    @property
    def unopened(self) -> str:
        """What is missing if there are not two versions to compare, "" otherwise."""
        failed = {one.label for one in self.failures}
        if len(self.variants) > 1 or not failed:
            return ""
        if ORIGINAL in failed:
            return "no engine loads it"
        missing = sorted(failed - {""})
        return f"no engine loads {missing[0]}" if missing else "it is not converted"

    def of(self, label: str) -> Variant:
        """The version with this label."""
        return next(one for one in self.variants if one.label == label)

    def model(self, path: Path) -> Model:
        """The model in a file, not to be changed."""
        return read(path)

    def models(self) -> Models:
        """Copies of both models, to be changed."""
        other = self.files.other
        mine = clone_model(read(self.original.opened))
        return mine, None if other is None else clone_model(read(other))

    def changed(self, name: str, models: Models, only: str = "") -> Suite:
        """The versions of changed models: of both, or of the first and of what becomes of it in the
        conversions of the check; of the original and of the version `only`, if that is named. All
        have the original's names. Raises BridgeError if one is missing."""
        found = replace(self, variants=[], failures=[], pruned=[], told=[], notes=[])
        for label, path in self._written(name, models, found.pruned):
            if not found.variants or only in ("", label):
                like = found.original.session if found.variants else None
                session = self.sessions.open(path, like)
                found.variants.append(Variant(label, path, path, session.engine, session))
            if label == only:
                break
        return found

    def _written(self, name: str, models: Models, pruned: list[str]) -> Iterator[tuple[str, Path]]:
        """The files of changed models, with the labels of their versions."""
        mine, its = models
        yield ORIGINAL, self.write(mine, self.original.opened, name)
        if self.files.other is not None and its is not None:
            yield self.files.other.name, self.write(its, self.files.other, f"{name}-too")
        else:
            yield from converted(self.files, f"{name}-too", self.scratch, pruned, mine)

    def write(self, model: Model, like: Path, name: str, opset: int | None = None) -> Path:
        """Writes a changed model in the format of a file; ONNX in this operator set, if given."""
        target = self.scratch / f"{name}{like.suffix.lower()}"
        openvino = self._older_release() if target.suffix == ".xml" else None
        bridge.save(model, target, opset=opset, openvino=openvino)
        return target

    def open(self, model: Model, name: str, opset: int | None = None) -> Session:
        """A session of a change of the original."""
        return self.sessions.open(self.write(model, self.original.opened, name, opset))

    @property
    def openvino(self) -> str:
        """The version of the OpenVINO that runs IRs."""
        return str(self.sessions.engine(OpenVino).version)

    def _older_release(self) -> str | None:
        """The release of the OpenVINO that runs IRs, if it cannot read the newest ones."""
        release = _release(self.openvino)
        try:
            return release if release_number(release) < release_number(NEWEST) else None
        except UsageError:  # a release of the future
            return None


def converted(
    files: Files, name: str, scratch: Path, pruned: list[str], model: Model | None = None
) -> Iterator[tuple[str, Path]]:
    """The original, or a changed `model` of it, in the other format, then back again, with their
    labels. What the conversions prune is added to `pruned`."""
    suffix = files.original.suffix.lower()
    there = scratch / f"{name}{'.onnx' if suffix == '.xml' else '.xml'}"
    back = scratch / f"{name}-back{suffix}"
    here, other = _KINDS[suffix], _KINDS[there.suffix]
    source = model or read(files.original)
    options = files.options
    if there.suffix == ".onnx":  # A conversion to ONNX has no device.
        left = {k: v for k, v in options.items() if k not in for_device(options)}
        options = cast(ConvertOptions, left)
    pruned.extend(bridge.convert(source, there, **options).pruned)
    yield f"{here} → {other}", there
    returning = {} if there.suffix == ".xml" else for_device(files.options)
    if returning:  # ONNX has no ranges of sizes, which devices may want.
        shapes = {value.name: value.shape for value in source.graph.inputs if value.shape}
        returning["input_shapes"] = shapes
    states = STATEFUL.read(source.metadata)
    if back.suffix == ".xml" and states is not None:
        returning["stateful"] = {pair.input: pair.output for pair in states.pairs}
        returning["beam_idx"] = states.beams
    pruned.extend(bridge.convert(read(there), back, **cast(ConvertOptions, returning)).pruned)
    yield f"{here} → {other} → {here}", back


def build(
    request: Request, source: Path, against: Path | None, scratch: Path, sessions: Sessions
) -> Suite:
    """Converts, if there is one file, and opens all versions. Raises UsageError for files that
    cannot be compared."""
    files = prepared(source, against, request.conversion, request.weights, scratch)
    suite = Suite(files, scratch, sessions, DeviceCheck.of(files.options))
    suite.told += files.told
    suite.notes += files.notes
    other = None if files.other is None else files.other.suffix.lower()
    start({files.original.suffix.lower(), other} if other else (".onnx", ".xml"))
    for label, path, of_file in _versions(suite, request):
        if suite.failures and not suite.variants:
            continue  # What the conversion says of the model is told all the same.
        try:
            request.tell(f"loading {label}")
            _open(suite, label, path, of_file)
        except BridgeError as error:
            text = f"{label}: {shortened(_said(error, files, request), 500)}"
            suite.failures.append(Failure(label, text))
    if len(suite.variants) > 1:
        first, second = (read(one.path) for one in suite.variants[:2])
        in_64 = [one for one in suite.variants if not one.is_ir]
        is_mixed = 0 < len(in_64) < len(suite.variants) and sessions.device == RAN_ON
        if is_mixed and (suite.is_pair or not suite.original.is_ir):
            suite.wide = tuple(wide_integers(read(in_64[0].path)))
        suite.fixed = Fixed.of(first, second, files.options.get("values") or {})
        suite.told += suite.fixed.told("" if files.other is None else files.other.name)
    return suite


def _versions(suite: Suite, request: Request) -> Iterator[tuple[str, Path, tuple[FileFacts, ...]]]:
    files = suite.files
    yield ORIGINAL, files.original, files.facts[0]
    if files.other is not None:
        yield files.other.name, files.other, files.facts[1]
        return
    request.tell("converting")
    try:
        for label, path in converted(files, "model", suite.scratch, suite.pruned):
            yield label, path, facts(path)
    except BridgeError as error:
        suite.failures.insert(0, Failure("", f"{CONVERSION}{_said(error, files, request)}"))


def _said(error: BridgeError, files: Files, request: Request) -> str:
    """The text of an error, with the original's name as it was given."""
    return str(error).replace(str(files.original), name_of(request.source))


def _open(suite: Suite, label: str, path: Path, of_file: tuple[FileFacts, ...]) -> None:
    """Opens a version in the form that its engine can run."""
    opened, is_ir = path, path.suffix.lower() == ".xml"
    if is_ir:
        if suite.device is not None:
            found = suite.device.look_at(label, read(path))
            suite.failures += [Failure(label, text) for text in found]
        opened = _worked_round(suite, label, path)
    like = suite.original.session if suite.variants else None
    try:
        session = suite.sessions.open(opened, like)
    except LacksOperatorError as error:
        rewritten = None if is_ir else _in_standard_operators(suite, path)
        if rewritten is None:
            raise
        opened = rewritten
        session = suite.sessions.open(opened, like)
        suite.told.append(f"{label} is run as Bridge rewrites it")
        suite.notes.append(
            f"no engine runs {label}, so that it is run in operators of the standard, as "
            "Bridge rewrites it: this shows that conversions and engines agree, not that "
            f"Bridge reads those operators rightly ({shortened(str(error), 300)})"
        )
    if is_ir:
        suite.told += _releases(suite, label, read(path))
    suite.notes += [note for note in session.notes if note not in suite.notes]
    first = suite.files.original.name
    suite.told += [f"output '{name}' is only in {first}" for name in session.missing]
    suite.told += [f"output '{name}' is only in {label}" for name in session.extra]
    if like is not None and not session.outputs:
        suite.failures.append(Failure(label, f"{label}: has no output of {first}"))
    suite.variants.append(Variant(label, path, opened, session.engine, session, of_file))


def _worked_round(suite: Suite, label: str, path: Path) -> Path:
    """The form of an IR for another device that the CPU plugin runs: with workarounds for the
    faults of that plugin. The file itself, if it is for this plugin or not made by Bridge."""
    model = read(path)
    if not is_elsewhere(suite.files.options) or model.opset is None:
        return path
    target = suite.scratch / f"{path.stem}-worked-round.xml"
    shapes = {value.name: value.shape for value in model.graph.inputs if value.shape}
    bridge.save(clone_model(model), target, input_shapes=shapes)
    suite.notes.append(
        f"{label} runs with workarounds for the CPU plugin, which files for other devices do not "
        "have"
    )
    return target


def _in_standard_operators(suite: Suite, path: Path) -> Path | None:
    """An ONNX model that no engine runs, as Bridge writes it in operators of the standard."""
    there, back = (suite.scratch / f"plain-{path.stem}{end}" for end in (".xml", ".onnx"))
    options = cast(ConvertOptions, {**suite.files.options, "device": "ANY"})
    try:
        bridge.convert(read(path), there, **options)
        bridge.convert(there, back, standard_operators=True)
    except BridgeError:
        return None
    return back


def _releases(suite: Suite, label: str, model: Model) -> list[str]:
    """What the first line says of the release of OpenVINO that runs an IR."""
    asked, written_for = suite.files.options.get("openvino"), WRITTEN_FOR.read(model.metadata)
    try:
        installed = release_number(_release(suite.openvino))
        older = written_for is not None and installed < release_number(written_for)
        newer = asked is not None and installed > release_number(asked)
    except UsageError:  # a record of somebody else, or a release of the future
        return []
    told = [f"not run on OpenVINO {asked}"] if newer else []
    return told + [f"{label} is for OpenVINO {written_for}, and ran on {suite.openvino}"] * older


def _release(version: str) -> str:
    """The release of a version of OpenVINO."""
    return ".".join(version.split(".")[:2])


def for_part(files: Files, part: Model) -> Files:
    """The files' options for a part of the original: those that name missing inputs or outputs are
    left out."""
    ends = {value.name for value in part.graph.inputs} | {*part.graph.output_names}
    options = {**files.options, "stateful": False, "beam_idx": False, "one_decoder": False}
    for name in ("input_shapes", "values", "output_ranks"):
        given = cast(dict[str, object], options.get(name) or {})
        options[name] = {key: given[key] for key in given if key in ends} or None
    return replace(files, options=cast(ConvertOptions, options))
