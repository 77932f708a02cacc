"""What the files of a version were: names, sizes and hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bridge.files import companion


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
