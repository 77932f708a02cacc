"""What a command writes, held against what it reads and what stands there.

Nothing that is written takes the place of a file that the same command reads. A report, a page, a
picture or inputs take the place of their own kind, or of an empty file; what else stands there goes
only where it is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import bridge
from bridge.errors import BridgeError, UsageError
from bridge.files import companion, stamp_of
from bridge.kinds import LEAVE, Kind


def require_outputs(
    written: Mapping[Path, Kind | None],
    models: Sequence[Path],
    others: Iterable[Path] = (),
    force: bool = False,
) -> None:
    """Raises UsageError where a file cannot be written: it is one of the `models`, their data, or
    the `others` that are read (by path, link or inode); it is written twice; its name or folder
    do not suit; or it is of another kind, and `force` does not allow for that. None stands for any
    kind."""
    read = [*models, *(companion(m) for m in models if m.suffix.lower() == ".xml"), *others]
    taken = {_place(path) for path in read} - {None}
    places: dict[Path, Path] = {}
    for path, kind in written.items():
        if kind is not None:
            _require_name(path, kind)
        twin = places.setdefault(path.resolve(), path)
        if twin != path:
            raise UsageError(f"{path}: is the same file as {twin}, and both would be written")
        if not path.exists():
            continue
        if kind is not None and not force and not kind.is_at(path):
            if _place(path) not in taken:
                raise UsageError(f"{path}: would be overwritten, but is not {kind.name}; {LEAVE}")
        elif (force or kind is None) and _place(path) not in taken:
            taken |= {_place(file) for model in models for file in _data_of(model, path)}
        if _place(path) in taken:
            raise UsageError(f"{path}: is read, and would be overwritten; choose another name")


def _require_name(path: Path, kind: Kind) -> None:
    if path.suffix.lower() != (kind.suffix or path.suffix.lower()):
        raise UsageError(f"{path}: give it a name that ends in {kind.suffix}")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent}: there is no such directory to write to")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is no regular file; choose another name")


def _place(path: Path) -> tuple[int, int] | None:
    """What tells a file from all others, by whatever name; None where there is none."""
    try:
        return stamp_of(path)[:2]
    except (OSError, ValueError):
        return None


def _data_of(model: Path, path: Path) -> list[Path]:
    """The files that a model is read from, where one of them may be at `path`: data are in the
    folder of their model."""
    folders = (model.parent.resolve(), model.resolve().parent)
    if any(path.resolve().is_relative_to(folder) for folder in folders):
        with suppress(BridgeError):  # which is told when the model is read
            return [Path(file) for file in bridge.load(model).files]
    return []
