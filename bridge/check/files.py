"""The files of a check: their names, sizes and hashes, and the models that they hold."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import bridge
from bridge.files import companion
from bridge.neutral.graph import Model

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
