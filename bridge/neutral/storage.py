"""Copying ranges of files without reading them into memory."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO

from bridge.neutral.tensor import CHUNK, FileRange

_SMALL = 1 << 16
_PIECE = 1 << 26
"""Bytes that the kernel copies at once: a signal waits for it to end."""


class RangeCopier:
    """Appends ranges of files to `target`, a file opened for writing; every file it reads from
    stays open until the copier is closed. Large ranges are copied by the kernel if it can, their
    holes as holes."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self._sources: dict[str, BinaryIO] = {}
        self._open = ExitStack()

    def __enter__(self) -> RangeCopier:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def copy(self, range: FileRange) -> None:
        """Appends the bytes of `range`; InvalidModelError if the file lacks them."""
        source = self._sources.get(range.path)
        if source is None:
            try:
                source = open(range.path, "rb")  # noqa: SIM115
            except OSError as error:
                raise range.unreadable(error) from error
            self._sources[range.path] = self._open.enter_context(source)
        copied = self._by_kernel(source, range) if range.length > _SMALL else 0
        source.seek(range.offset + copied)
        while copied < range.length:
            piece = source.read(min(range.length - copied, CHUNK))
            if not piece:
                raise range.unreadable()
            self._target.write(piece)
            copied += len(piece)

    def _by_kernel(self, source: BinaryIO, range: FileRange) -> int:
        """Bytes that the kernel copied, 0 if it cannot (other systems, other file systems)."""
        if not hasattr(os, "copy_file_range"):
            return 0
        self._target.flush()
        file, target = source.fileno(), self._target.fileno()
        sparse = _is_sparse(file)
        begin = os.lseek(target, 0, os.SEEK_CUR)
        copied = 0
        while copied < range.length:
            place, left = range.offset + copied, range.length - copied
            hole, data = _parts(file, place) if sparse else (0, left)
            if hole:
                copied += min(hole, left)
                os.ftruncate(target, begin + copied)
                os.lseek(target, begin + copied, os.SEEK_SET)
                continue
            try:
                count = os.copy_file_range(file, target, min(left, data, _PIECE), place)
            except OSError:
                break
            if not count:
                break
            copied += count
        self._target.seek(begin + copied)
        return copied


def _is_sparse(file: int) -> bool:
    """Whether a file may have holes: it takes less room than it has bytes."""
    status = os.fstat(file)
    return status.st_blocks * 512 < status.st_size and hasattr(os, "SEEK_DATA")


def _parts(file: int, place: int) -> tuple[int, int]:
    """The sizes of the hole that begins at a place of a file and of the data behind it."""
    end = os.fstat(file).st_size
    try:
        begin = os.lseek(file, place, os.SEEK_DATA)
        return begin - place, os.lseek(file, begin, os.SEEK_HOLE) - begin
    except OSError as error:
        return max(end - place, 0) if error.errno == errno.ENXIO else 0, _PIECE
