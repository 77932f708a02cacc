"""How the process ends when it is told to: within a second, whatever it is doing, and without
leaving anything behind.

Python runs a signal's handler in the main thread and between two steps of its own, which may be
seconds apart while a library works. So a thread of its own waits for signals too, and ends the
process where the handler has not.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

PATIENCE = 0.5
"""Seconds in which the main thread may end by itself."""

_SHOW_CURSOR = "\x1b[?25h"


def end_on_signals(watch: bool) -> None:
    """Has the process end with 128 and the signal's number on SIGTERM and SIGHUP (SIGBREAK on
    Windows), as Python has it on SIGINT. Those that it was started to ignore (by `nohup`) stay
    ignored. `watch` is for a process that does nothing else."""
    if threading.current_thread() is not threading.main_thread():
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    for number in numbers:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    if not watch:
        return
    # Windows wakes nobody through a pipe.
    arrived, told = socket.socketpair()
    told.setblocking(False)
    signal.set_wakeup_fd(told.detach(), warn_on_full_buffer=False)
    ending = {n for n in numbers if signal.getsignal(n) in (_end, signal.default_int_handler)}
    threading.Thread(target=_watch, args=(arrived, ending), daemon=True).start()


def _end(number: int, frame: FrameType | None) -> None:
    """Ends the process like an exception, so that temporary files are removed."""
    sys.exit(128 + number)


def leave(code: object) -> None:
    """Ends the process at once where it does nothing else, with what it has printed: to take a
    model and all modules apart takes a while, seconds for a large one, in which nobody listens to
    `_watch`."""
    if signal.set_wakeup_fd(-1) < 0 or not isinstance(code, int):
        return
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _watch(arrived: socket.socket, ending: set[int]) -> None:
    """Waits for one of the signals that end the process, and sees to it that it does."""
    while (number := arrived.recv(1)[0]) not in ending:
        pass
    time.sleep(PATIENCE)
    from bridge.atomic_write import abandon

    abandon()
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():  # a progress display hides it
            os.write(sys.stderr.fileno(), _SHOW_CURSOR.encode())
    os._exit(128 + number)
