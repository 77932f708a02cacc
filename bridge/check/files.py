"""The files of a check: their names, sizes and hashes, and the models that they hold. Models in
memory become files, which engines open."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bridge
from bridge.errors import InvalidModelError
from bridge.files import companion, source_format
from bridge.library.sources import classify
from bridge.neutral.graph import Model

if TYPE_CHECKING:
    import onnx

_KEPT = 8  # models


@dataclass(frozen=True)
class FileFacts:
    """One file: its name, its size in bytes, and its SHA-256."""

    name: str
    size: int
    sha256: str


def facts(path: Path, others: Iterable[Path] | None = None) -> tuple[FileFacts, ...]:
    """Of a model's file and of those that its constants are in: `others`, or else the one that
    Bridge writes beside it."""
    found = [FileFacts(path.name, path.stat().st_size, _sha256(path))]
    for file in sorted([companion(path)] if others is None else others):
        if file.is_file() and not file.samefile(path):
            found.append(FileFacts(file.name, file.stat().st_size, _sha256(file)))
    return tuple(found)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path) -> Model:
    """The model in a file, not to be changed. It is read once, unless the file is written anew."""
    if not path.is_file():
        return bridge.load(path)
    file = path.stat()
    return _read(path, file.st_ino, file.st_size, file.st_mtime_ns)


@lru_cache(_KEPT)
def _read(path: Path, *written: int) -> Model:
    return bridge.load(path)


@contextmanager
def models_kept() -> Iterator[None]:
    """What `read` gives meanwhile is kept until the end."""
    try:
        yield
    finally:
        _read.cache_clear()


def as_file(source: Any, folder: Path) -> Path:
    """The path of a model, which is written into `folder` where it is in memory, as it is: not as
    Bridge would write it, if its library can do that.

    Raises UsageError for what is no model or has another suffix, InvalidModelError for what cannot
    be written."""
    given = classify(source)
    if given.kind == "file":
        source_format(Path(source))
        return Path(source)
    folder.mkdir()
    if given.kind in ("pair", "openvino"):
        return given.written(folder)
    path = folder / ("model.onnx" if given.format == "onnx" else "model.xml")
    if given.kind == "model":
        bridge.save(given.held, path)
    elif isinstance(given.held, bytes):
        path.write_bytes(given.held)
    else:
        _save(given.held, path)
    return path


def name_of(source: Any) -> str:
    """What a report calls a model: its path, or what kind of object it is."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if isinstance(source, tuple):
        return "an IR in memory"
    home, _, _ = type(source).__module__.partition(".")
    if home == "builtins":
        return "an ONNX model in memory"
    return f"{'onnx' if home.startswith('onnx_ml') else home}.{type(source).__name__} in memory"


def _save(model: onnx.ModelProto, path: Path) -> None:
    import onnx

    try:
        path.write_bytes(model.SerializeToString())
    except ValueError:  # beyond what a proto can hold
        try:
            onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data")
        except Exception as error:
            raise InvalidModelError(f"the model cannot be written to a file: {error}") from error
