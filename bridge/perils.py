"""Engines that end the process: some kernels divide by zero, or write where they must not, for some
inputs.

A process that is to outlive them does its work in a child, which notes each call of an engine
before it begins. Where the child dies of one, the next child does all that the first did, in the
same order, but for that call.
"""

from __future__ import annotations

import mmap
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

DEADLY = frozenset(
    getattr(signal, name)
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV")
    if hasattr(signal, name)
)
"""The signals by which a process ends for its own fault."""

MOST = 20
"""Calls that may end a process before the work is given up."""


class _Journal:
    """What a process and its parent both see: the number of the call that goes on, and the engine.
    `deadly` are the calls that are left out, and why."""

    def __init__(self) -> None:
        self.shared = mmap.mmap(-1, 128)
        self.deadly: Mapping[int, str] = {}
        self.calls = 0

    def write(self, number: int, engine: str) -> None:
        self.shared[:] = f"{number} {engine}".encode()[:128].ljust(128)

    def read(self) -> tuple[int, str]:
        number, _, engine = self.shared[:].decode(errors="replace").strip().partition(" ")
        return int(number or 0), engine


_journal: _Journal | None = None


@contextmanager
def call_of(engine: str, error: type[Exception]) -> Iterator[None]:
    """Surrounds a call of an engine; raises `error` instead where it ended an earlier process."""
    if _journal is None:
        yield
        return
    _journal.calls += 1
    number = _journal.calls
    if number in _journal.deadly:
        raise error(f"{engine}: {_journal.deadly[number]}")
    _journal.write(number, engine)
    try:
        yield
    finally:
        _journal.write(0, "")


def outlive() -> None:
    """Forks: returns in the child, which does the work; the parent waits, and ends as the child
    does. A child that an engine ends has successors, which leave out what it died of."""
    global _journal
    journal, deadly = _Journal(), dict[int, str]()
    told = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    while True:
        journal.write(0, "")
        alive, held = os.pipe()
        child = os.fork()
        if not child:
            for name, handler in told.items():
                signal.signal(name, handler)
            os.close(held)
            threading.Thread(target=_follow, args=(alive,), daemon=True).start()
            journal.deadly, _journal = deadly, journal
            return
        os.close(alive)
        _hand_on_signals(child, told)
        _, status = os.waitpid(child, 0)
        os.close(held)
        if not os.WIFSIGNALED(status):
            os._exit(os.WEXITSTATUS(status))
        number, engine = journal.read()
        ended = signal.Signals(os.WTERMSIG(status))
        if ended not in DEADLY or not engine:
            os._exit(128 + ended)
        if number in deadly or len(deadly) == MOST:
            os.write(2, f"Error: {engine} ended the process ({ended.name})\n".encode())
            os._exit(2)
        deadly[number] = f"it ended the process ({ended.name})"


def _hand_on_signals(child: int, told: Mapping[signal.Signals, Any]) -> None:
    """What the parent is told to do, the child is; a terminal tells both what it interrupts."""

    def tell(number: int, frame: object) -> None:
        os.kill(child, number)

    for number, handler in told.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else tell)


def _follow(alive: int) -> None:
    """Ends the child where the parent has ended, which holds the other end of the pipe."""
    os.read(alive, 1)
    os._exit(128 + signal.SIGKILL)
