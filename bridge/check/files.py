"""What the files of a version were: names, sizes and hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import bridge
from bridge.errors import BridgeError
from bridge.files import companion
from bridge.neutral.tensor import FileRange


@dataclass(frozen=True)
class FileFacts:
    """One file: its name, its size in bytes, and its SHA-256."""

    name: str
    size: int
    sha256: str


def facts(path: Path, weights: Path | None = None) -> tuple[FileFacts, ...]:
    """Of a model's file and of those that its constants are in; `weights` is the `.bin` of an IR,
    where it has another name."""
    others: set[Path] = set()
    if path.suffix.lower() == ".xml":
        others = {weights or companion(path)}
    elif path.suffix.lower() == ".onnx":
        others = _data_of(path)
    found = [FileFacts(path.name, path.stat().st_size, _sha256(path))]
    for file in sorted(others):
        if file.is_file() and not file.samefile(path):
            found.append(FileFacts(file.name, file.stat().st_size, _sha256(file)))
    return tuple(found)


def _data_of(path: Path) -> set[Path]:
    try:
        model = bridge.load(path)
    except BridgeError:  # which the check reports as it goes on
        return set()
    tensors = (n.attributes["value"] for n in model.graph.walk() if n.op == "Constant")
    return {Path(t.source.path) for t in tensors if isinstance(t.source, FileRange)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
