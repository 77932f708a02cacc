"""How the process ends on a signal: within a second, whatever it is doing, and without leaving
files behind.

Python runs a signal's handler in the main thread and between two steps of its own. These may be
seconds apart while a library works. So a separate thread waits for signals too, and ends the
process if the handler has not done so.
"""

import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

PATIENCE = 0.5
"""The time for the main thread to end by itself, in seconds."""

_SHOW_CURSOR = "\x1b[?25h"


def end_on_signals(watch: bool) -> None:
    """Makes SIGTERM and SIGHUP (SIGBREAK on Windows) end the process with 128 and the signal's
    number, as Python does for SIGINT. Signals that it ignored from the start (by `nohup`) stay
    ignored. `watch` is for a process that runs only a command."""
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
    """Ends a process that runs only a command at once, after its output. Freeing a model and all
    modules takes a while, seconds for a large model, and meanwhile nobody listens to `_watch`."""
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
    from bridge.files.atomic_write import abandon

    abandon()
    with suppress(OSError, ValueError):
        if sys.stderr.isatty():  # a progress display hides it
            os.write(sys.stderr.fileno(), _SHOW_CURSOR.encode())
    os._exit(128 + number)
