"""The models that a command's arguments name, where they may be many: files, folders, patterns."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import UsageError
from bridge.files import TEXT_SUFFIXES

_ONNX = (".onnx", *TEXT_SUFFIXES)


@dataclass(frozen=True)
class Job:
    """A model, and the one that it is compared with or becomes."""

    model: Path
    other: Path | None = None


def is_many(given: Sequence[Path]) -> bool:
    """Whether arguments name more than a model and what it is compared with."""
    return len(given) > 2 or any(path.is_dir() or _is_pattern(path) for path in given)


def found(given: Sequence[Path]) -> list[Path]:
    """All models that arguments name, each once. UsageError where one names none."""
    models: dict[Path, None] = {}
    for path in given:
        named = [path]
        if path.is_dir():
            named = sorted(file for file in path.rglob("*") if _is_model(file, path))
        elif _is_pattern(path):
            matched = sorted(map(Path, glob.glob(str(path), recursive=True)))
            named = [file for file in matched if _is_model(file, Path())]
        if not named:
            raise UsageError(
                f"{path}: holds no model; give a file, or a folder or pattern of files that are "
                f"{', '.join(_ONNX)}, or .xml of an IR"
            )
        models |= dict.fromkeys(named)
    return list(models)


def paired(models: Sequence[Path]) -> list[Job]:
    """What is checked: an IR beside the ONNX model of its name with that, other models alone."""
    given = set(models)
    pairs = {
        model: model.with_suffix(".xml")
        for model in models
        if model.suffix.lower() in _ONNX and model.with_suffix(".xml") in given
    }
    return [Job(model, pairs.get(model)) for model in models if model not in pairs.values()]


def placed(models: Sequence[Path], folder: Path) -> list[Job]:
    """What is converted: each model to the other format, under its name in a folder. UsageError
    where two would have one name."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such directory to write to")
    jobs: dict[Path, Job] = {}
    for model in models:
        suffix = ".onnx" if model.suffix.lower() == ".xml" else ".xml"
        target = folder / f"{model.stem}{suffix}"
        if target in jobs:
            raise UsageError(f"{target}: would be both of {jobs[target].model} and of {model}")
        jobs[target] = Job(model, target)
    return list(jobs.values())


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path)) and not path.exists()


def _is_model(file: Path, folder: Path) -> bool:
    """Whether a file is a model by its name, and not hidden; an `.xml` may be anything, so its
    first bytes count."""
    if any(part.startswith(".") for part in file.relative_to(folder).parts) or not file.is_file():
        return False
    if file.suffix.lower() != ".xml":
        return file.suffix.lower() in _ONNX
    try:
        with file.open("rb") as opened:
            return b"<net" in opened.read(4096)
    except OSError:
        return True  # The message about it comes with its turn.
