"""The files of a check as engines can compare them: which one is the original, and what has to be
written anew before both take the same inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import bridge
from bridge.check.files import FileFacts, facts, read
from bridge.check.specialized import is_form_of
from bridge.errors import BridgeError, UsageError
from bridge.files import TEXT_SUFFIXES, companion
from bridge.library.packing import Boundary
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Graph, Model, names_of_outputs
from bridge.onnx_format import text
from bridge.options import ConvertOptions
from bridge.passes.compress import compress
from bridge.passes.decompress import decompress
from bridge.passes.edit import cut_at
from bridge.passes.inputs import give_types, override_shapes
from bridge.passes.preprocess import asked_for, further_steps, preprocess
from bridge.records.preprocessing import PREPROCESSING


@dataclass(frozen=True)
class Files:
    """The original and the other file; without one, the original is converted with `options`.

    `facts` has names and hashes of the files as they were given. `notes` say what was changed, and
    `told` what the first line of the report says of it. `halves` is set if weights were rounded to
    f16."""

    original: Path
    other: Path | None
    options: ConvertOptions
    facts: tuple[tuple[FileFacts, ...], ...]
    notes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    halves: bool = False

    def each(self, change: Callable[[Path], Path]) -> Files:
        """The files, each changed."""
        other = None if self.other is None else change(self.other)
        return replace(self, original=change(self.original), other=other)

    def swapped(self, why: str) -> Files:
        """The first file, held to the second."""
        assert self.other is not None
        note = (
            f"{self.original.name} {why}, so that it is held to {self.other.name} and not the "
            "other way round"
        )
        return replace(
            self,
            original=self.other,
            other=self.original,
            facts=self.facts[::-1],
            notes=(*self.notes, note),
        )


def prepared(
    source: Path,
    against: Path | None,
    options: ConvertOptions,
    weights: Path | None,
    scratch: Path,
) -> Files:
    """The files, ready to be compared. Those that are written go into `scratch`. Raises UsageError
    for files that are not there, and for options that they do not allow."""
    for path in filter(None, (source, against, weights)):
        if not path.is_file():
            raise UsageError(f"{path}: there is no such file")
    given = (source,) if against is None else (source, against)
    seen = tuple(facts(path, _constants(path, weights)) for path in given)
    files = Files(source, against, options, seen)
    files = files.each(lambda path: _binary(path, scratch))
    if weights is not None:
        files = _with_weights(files, weights, scratch / "given")
    for step in (_unwrapped, _ordered, _cut, _preprocessed, _after_onnx, _completed, _rounded):
        folder = scratch / step.__name__.strip("_")
        files = step(files, folder)
    return files


def rewritten(path: Path, model: Model, folder: Path) -> Path:
    """A changed model in the format of its file, under its name in another folder."""
    folder.mkdir(exist_ok=True)
    bridge.save(model, folder / path.name)
    return folder / path.name


def _constants(path: Path, weights: Path | None) -> list[Path]:
    """The files beside a model's own that its constants are in."""
    if path.suffix.lower() == ".xml":
        return [weights or companion(path)]
    try:
        return [*map(Path, read(path).files)]
    except BridgeError:  # which the check tells when it goes on
        return []


def _binary(path: Path, scratch: Path) -> Path:
    """The file. A model in text is written as the `.onnx` that engines take."""
    if path.suffix.lower() not in TEXT_SUFFIXES:
        return path
    model = scratch / f"{path.stem}.onnx"
    model.write_bytes(text.read_text(path, str(path)).SerializeToString())
    return model


def _unwrapped(files: Files, folder: Path) -> Files:
    """The files, with the IR for an ONNX model that names it."""

    def unwrapped(path: Path) -> Path:
        try:
            model = None if path.suffix.lower() == ".xml" else read(path)
        except BridgeError:  # which the conversion tells
            model = None
        if model is None or model.format == "onnx":
            return path
        return rewritten(path.with_suffix(".xml"), model, folder)

    return files.each(unwrapped)


def _with_weights(files: Files, weights: Path, folder: Path) -> Files:
    """The files. The first IR has the file `weights` beside it."""
    folder.mkdir()
    for role in ("original", "other"):
        path: Path | None = getattr(files, role)
        if path is not None and path.suffix.lower() == ".xml":
            link = folder / path.name
            link.symlink_to(path.absolute())
            link.with_suffix(".bin").symlink_to(weights.absolute())
            return replace(files, **{role: link})  # type: ignore[arg-type]
    raise UsageError(f"{files.original}: only an IR (.xml) has its weights in a .bin")


def _ordered(files: Files, folder: Path) -> Files:
    """A specialized form has too few inputs to hold its original to."""
    if files.other is None:
        return files
    first, second = read(files.original), read(files.other)
    if is_form_of(first, second):
        return files.swapped("is a specialized form")
    if further_steps(second, first):
        return files.swapped("preprocesses its inputs")
    return files


def _cut(files: Files, folder: Path) -> Files:
    """If one file gives inner values of the other and none of its outputs, as `--outputs` makes it,
    the other gives them, too."""
    if files.other is None:
        return files
    paths = {"original": files.original, "other": files.other}
    mine, its = (read(path).graph for path in paths.values())
    if not _names_of_outputs(mine).isdisjoint(_names_of_outputs(its)):
        return files
    for (role, path), other in zip(paths.items(), (its, mine), strict=True):
        model, names = clone_model(read(path)), [*dict.fromkeys(names_of_outputs(other))]
        inner = {n for node in model.graph.nodes for value in node.outputs for n in value.names}
        if inner.issuperset(names):
            cut_at(model, names)
            told = f"compared are inner values of {path.name}: {', '.join(names)}"
            changed: dict[str, Any] = {role: rewritten(path, model, folder)}
            return replace(files, told=(*files.told, told), **changed)
    return files


def _names_of_outputs(graph: Graph) -> set[str]:
    return {*names_of_outputs(graph), *(name for value in graph.outputs for name in value.names)}


def _preprocessed(files: Files, folder: Path) -> Files:
    """The original with the preprocessing that the other model has, or gets, so that both take the
    same inputs."""
    options = cast(dict[str, Any], dict(files.options))
    asked = {name: options.pop(name, None) for name in PREPROCESSING}
    asked["input_types"] = options.get("input_types")
    steps = asked_for(read(files.original), asked) if any(asked.values()) else []
    if steps and asked["input_types"]:
        made = {step.input for step in steps if step.element}
        options["input_types"] = {k: v for k, v in asked["input_types"].items() if k not in made}
    files = replace(files, options=cast(ConvertOptions, options))
    if files.other is not None:
        steps = further_steps(read(files.original), read(files.other))
    if not steps:
        return files
    model = clone_model(read(files.original))
    preprocess(model, steps)
    said = []
    for step in steps:
        values = [step.element] if step.element else []
        values += ["reverse channels"] if step.reverse else []
        values += [f"mean {_shown(step.mean)}"] if step.mean else []
        values += [f"scale {_shown(step.scale)}"] if step.scale else []
        values += [f"layout {step.model}->{step.tensor}"] if step.tensor != step.model else []
        said.append(f'"{step.input}" ({", ".join(values)})')
    whose = "asked for" if files.other is None else f"which {files.other.name} has"
    return replace(
        files,
        original=rewritten(files.original, model, folder),
        told=(*files.told, f"the original is fed preprocessed inputs, {whose}: {', '.join(said)}"),
    )


def _shown(numbers: list[float]) -> str:
    return f"{numbers[0]:g}" if len(numbers) == 1 else f"[{','.join(f'{n:g}' for n in numbers)}]"


def _after_onnx(files: Files, folder: Path) -> Files:
    """Sequences, optionals and strings are drawn for an ONNX model; an IR has their tensors."""
    if files.original.suffix.lower() != ".xml":
        return files
    boundary = Boundary.of(files.original)
    if not (boundary.inputs or boundary.vocabularies.inputs):
        return files
    if files.other is None or files.other.suffix.lower() == ".xml":
        raise UsageError(
            f"{files.original}: its inputs stand for sequences, optionals or strings; "
            "check the ONNX model instead, with this file as the other one"
        )
    return files.swapped("has inputs that stand for sequences, optionals or strings")


def _completed(files: Files, folder: Path) -> Files:
    """IRs whose inputs leave types and ranks open, with those that the user gave: OpenVINO does not
    run them without."""
    types = files.options.get("input_types") or {}
    shapes = files.options.get("input_shapes") or {}

    def completed(path: Path) -> Path:
        if path.suffix.lower() != ".xml":
            return path
        model = clone_model(read(path))
        if all(v.element is not None and v.shape is not None for v in model.graph.inputs):
            return path
        give_types(model, types)
        override_shapes(model, shapes)
        return rewritten(path, model, folder)

    return files.each(completed) if types or shapes else files


def _rounded(files: Files, folder: Path) -> Files:
    """If one file has weights of f32 stored as f16, the weights of the other are rounded too. The
    engines compute in f32 with both."""
    if files.other is None:
        halves = [bool(files.options.get("compress_to_fp16")), _has_halves(files.original)]
        rounded = [files.original] if halves == [True, False] else []
    else:
        halves = [_has_halves(path) for path in (files.original, files.other)]
        paths = (files.original, files.other)
        rounded = [path for path, has in zip(paths, halves, strict=True) if any(halves) and not has]

    def change(path: Path) -> Path:
        if path not in rounded:
            return path
        model = clone_model(read(path))
        decompress(model)
        compress(model)
        return rewritten(path, model, folder)

    notes = (
        f"the weights of {path.name} are rounded to f16, as the other's are" for path in rounded
    )
    return replace(files.each(change), notes=(*files.notes, *notes), halves=bool(rounded))


def _has_halves(path: Path) -> bool:
    """Whether a file is an IR that has weights of f32 stored as f16."""
    if path.suffix.lower() != ".xml":
        return False
    model = read(path)
    return any(
        node.op == "Cast" and "decompression" in (node.extras or {}).get("rt_info", "")
        for node in model.graph.walk()
    )
