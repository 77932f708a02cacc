"""The files of models: their suffixes, their companions, which files a conversion may overwrite,
and whether they stay unchanged while they are read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.errors import InvalidModelError, UsageError
from bridge.suggestions import about_suffix

if TYPE_CHECKING:
    from bridge.neutral.graph import Model


TEXT_SUFFIXES = (".onnxtxt", ".textproto")
"""Of ONNX models in text, in ONNX's own syntax and in protobuf's, which are only read."""


_LEAVE = "choose another destination, or say that it may go (`force=True`)"


def format_of(path: Path, is_written: bool = False) -> str:
    """ "onnx" or "ir" by the file's suffix; UsageError for others."""
    suffix = path.suffix.lower()
    if suffix == ".onnx":
        return "onnx"
    if suffix == ".xml":
        return "ir"
    if path.is_dir():
        raise UsageError(f"{path}: is a directory; give one of its models")
    help = about_suffix(path, (".onnx", ".xml"), is_written)
    raise UsageError(f"{path}: is neither .onnx nor .xml; {help}")


def source_format(path: Path) -> str:
    """Like `format_of`, for files to read: also models in text."""
    return "onnx" if path.suffix.lower() in TEXT_SUFFIXES else format_of(path)


def companion(target: Path) -> Path:
    """The file for constants of a model that are not in its own file."""
    if format_of(target) == "onnx":
        return target.with_name(f"{target.name}.data")
    return target.with_suffix(".bin")


def require_place(target: Path) -> None:
    """Raises UsageError if no file can be called `target`."""
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent}: there is no such directory to write to")
    for path in (target, companion(target)):
        try:
            path.stat()
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise UsageError(f"{path}: is a symbolic link that leads to itself") from None
            continue
        if not path.is_file():
            what = "a directory" if path.is_dir() else "no regular file"
            raise UsageError(f"{path}: is {what}; choose another name for the destination")


def require_file(source: Path) -> None:
    """Raises InvalidModelError if there is no regular file at `source`."""
    try:
        status = source.stat()
    except FileNotFoundError:
        raise InvalidModelError(f"{source}: there is no such file") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidModelError(f"{source}: cannot be read: {why}") from None
    if not stat.S_ISREG(status.st_mode):
        what = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise InvalidModelError(f"{source}: is {what}")


def opened(path: Path) -> BufferedReader:
    """Opens a regular file. OSError for others: a FIFO would wait, and a device never end."""
    flag = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | flag))  # noqa: SIM115
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError("it is no regular file")


def keep_sources(model: Model, source: Path | None, target: Path, force: bool) -> None:
    """Raises UsageError if writing `target` would overwrite a file that the model is read from:
    its own with `force` alone. A Model (None) may go back to its own file."""
    are_there = source is not None and source.exists() and target.exists()
    own = is_source(target, model) if source is None else are_there and source.samefile(target)
    if own and not force and source is not None:
        raise UsageError(f"{target}: is the model that is read, and would be overwritten; {_LEAVE}")
    for written in () if own else (target, companion(target)):
        if is_source(written, model):
            raise UsageError(
                f"{written}: would be overwritten, but {source or 'the model'} is read from it; "
                "choose another name or directory for the destination"
            )


def is_source(path: Path, model: Model) -> bool:
    """Whether the model was read from the file at `path`."""
    try:
        place = stamp_of(path)[:2]
    except OSError:
        return False
    return any(stamp[:2] == place for stamp in model.files.values())


def require_own(target: Path, written: Sequence[Path], force: bool) -> None:
    """Raises UsageError, unless `force` allows it, if a file of `written` is read-only, or exists
    although `target` does not. Such a file belongs to another model, or to no model."""
    for path in written:
        if force or not path.exists():
            continue
        if not (os.access(path, os.W_OK) and path.stat().st_mode & 0o222):
            raise UsageError(f"{path}: is read-only; {_LEAVE}")
        if path != target and not target.exists():
            raise UsageError(
                f"{path}: would be overwritten, but there is no {target.name} that it belongs to; "
                f"move it, {_LEAVE}"
            )


Stamp = tuple[int, int, int, int]
"""The state that changes when a file changes: device, inode, size, time of modification."""


def stamp_of(path: str | os.PathLike[str]) -> Stamp:
    """The stamp of a file; OSError if there is none."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def bytes_in(path: str | os.PathLike[str]) -> int:
    """The bytes that a file holds, fewer than its size if it has holes."""
    status = os.stat(path)
    return min(status.st_size, getattr(status, "st_blocks", status.st_size) * 512)


def require_unchanged(stamps: dict[str, Stamp]) -> None:
    """Raises InvalidModelError if a file has changed since it was first read."""
    for path, stamp in stamps.items():
        try:
            changed = stamp_of(path) != stamp
        except OSError:
            changed = True
        if changed:
            raise InvalidModelError(
                f"{path}: has changed since it was read, so no file was written; convert it "
                "again when it is complete"
            )
