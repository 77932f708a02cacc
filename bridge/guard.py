"""Removes a folder of temporary files where the process that writes into it is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_SHELL = "/bin/sh"
_SCRIPT = 'read -r _ || rm -rf -- "$0"'


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Has `folder` removed where this process is killed (SIGKILL, want of memory) in the block.

    Nothing in a process outlives SIGKILL, so another one stands by, a shell: it reads from a pipe
    that ends when this process does, unless a line came before. Where none can be started (other
    systems, limits), the folder is left to the next conversion.
    """
    try:
        end, line = os.pipe()
    except OSError:
        yield
        return
    process = None
    # In a group of its own, what is sent to the group of this process does not reach it.
    with suppress(OSError, AttributeError):  # Windows has no posix_spawn
        process = os.posix_spawn(
            _SHELL,
            [_SHELL, "-c", _SCRIPT, str(folder)],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, end, 0)],
            setpgroup=0,
        )
    os.close(end)
    try:
        yield
    finally:
        with suppress(OSError):
            os.write(line, b"\n")
        os.close(line)
        if process is not None:
            with suppress(OSError):  # where SIGCHLD is ignored there is nothing to wait for
                os.waitpid(process, 0)
