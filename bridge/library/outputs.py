"""Checks the files that a command writes, against the files it reads and the existing files.

A command never writes over a file that it reads. Reports, pages, pictures and inputs may replace a
file of their own kind, or an empty file. Any other file is replaced with `force` only.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from bridge.errors import UsageError
from bridge.files import companion, stamp_of
from bridge.files.kinds import LEAVE, Kind


def require_outputs(
    written: Mapping[Path, Kind | None],
    models: Sequence[Path],
    others: Iterable[Path] = (),
    force: bool = False,
) -> None:
    """Raises UsageError if one of the files `written` must not be written.

    A command reads `models`, their data, and `others`: none of these files may be written, under
    any path or link. No file may be written twice. Each name must suit its kind; None stands for
    any kind. A file of another kind may be replaced with `force` only.
    """
    places: dict[str, Path] = {}
    for path, kind in written.items():
        if kind is not None:
            _require_name(path, kind)
        twin = places.setdefault(os.path.realpath(path), path)
        if twin != path:
            raise UsageError(f"{path}: is the same file as {twin}, and both would be written")
    replaced = {place: path for place, path in places.items() if path.exists()}
    taken = {_identity(file) for file in [*models, *others, *_data(models, replaced)]}
    for path in replaced.values():
        kind = written[path]
        if _identity(path) in taken:
            raise UsageError(f"{path}: is read, and would be overwritten; choose another name")
        if not (force or kind is None or kind.is_at(path)):
            raise UsageError(f"{path}: would be overwritten, but is not {kind.name}; {LEAVE}")


def _require_name(path: Path, kind: Kind) -> None:
    if path.suffix.lower() != (kind.suffix or path.suffix.lower()):
        raise UsageError(f"{path}: give it a name that ends in {kind.suffix}")
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent}: there is no such directory to write to")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is no regular file; choose another name")


def _identity(path: Path) -> tuple[int, int] | None:
    """The identity of a file, the same for all its names; None if there is no file."""
    try:
        return stamp_of(path)[:2]
    except (OSError, ValueError):
        return None


def _data(models: Sequence[Path], replaced: Iterable[str]) -> Iterator[Path]:
    """The files that models are read from. A model is loaded to know them only if one may be in
    the places: data are in the folder of their model."""
    from bridge.library.api import load

    around = {folder for place in replaced for folder in Path(place).parents}
    for model in models:
        if model.suffix.lower() == ".xml":
            yield companion(model)
        if not around.isdisjoint((_real(model.parent), _real(model).parent)):
            with suppress(Exception):  # The command itself reports the error in the model.
                yield from map(Path, load(model).files)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
