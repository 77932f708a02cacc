"""Copying ranges of files without reading them into memory."""

from __future__ import annotations

import os
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO

from bridge.errors import InvalidModelError
from bridge.neutral.tensor import CHUNK, FileRange

_SMALL = 1 << 16
_PIECE = 1 << 26
"""Bytes that the kernel copies at once: a signal waits for it to end."""


class RangeCopier:
    """Appends ranges of files to `target`, a file opened for writing; every file it reads from
    stays open until the copier is closed. Large ranges are copied by the kernel where it can."""

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
        """Appends the bytes of `range`; InvalidModelError where the file lacks them."""
        source = self._sources.get(range.path)
        if source is None:
            try:
                source = open(range.path, "rb")  # noqa: SIM115
            except OSError as error:
                raise InvalidModelError(
                    f"{range.path}: cannot be read: {error.strerror}"
                ) from error
            self._sources[range.path] = self._open.enter_context(source)
        copied = self._by_kernel(source, range) if range.length > _SMALL else 0
        while copied < range.length:
            piece = os.pread(
                source.fileno(), min(range.length - copied, CHUNK), range.offset + copied
            )
            if not piece:
                raise InvalidModelError(
                    f"{range.path}: holds no {range.length} bytes at {range.offset}; "
                    f"is it truncated?"
                )
            self._target.write(piece)
            copied += len(piece)

    def _by_kernel(self, source: BinaryIO, range: FileRange) -> int:
        """Bytes that the kernel copied, 0 where it cannot (other systems, other file systems)."""
        if not hasattr(os, "copy_file_range"):
            return 0
        self._target.flush()
        copied = 0
        try:
            while copied < range.length:
                count = os.copy_file_range(
                    source.fileno(),
                    self._target.fileno(),
                    min(range.length - copied, _PIECE),
                    range.offset + copied,
                )
                if not count:
                    break
                copied += count
        except OSError:
            pass
        self._target.seek(0, os.SEEK_END)
        return copied
