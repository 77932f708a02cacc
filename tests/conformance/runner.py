"""Runs cases in child processes, so that an engine that dies or hangs costs one case only."""

from __future__ import annotations

import faulthandler
import multiprocessing
import queue
import threading
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any

from .outcome import Outcome
from .routes import run

TIMEOUT = 60.0  # seconds for one case on one route

# The fork server loads the cases once; every child then has them from its start.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([f"{__package__}.preload"])


class Worker:
    """One child process that runs cases one at a time, replaced when it dies or hangs."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Connection | None = None

    def run(self, name: str, route: str) -> Outcome:
        """Send a case down a route in the child."""
        fresh = self._connection is None
        outcome = self._run(name, route)
        if outcome.kind == "crash" and not fresh:
            # An earlier case may have left the process broken; a new one shows whose fault it is.
            outcome = self._run(name, route)
        return outcome

    def _run(self, name: str, route: str) -> Outcome:
        connection = self._connection or self._start()
        try:
            connection.send((name, route))
            if connection.poll(TIMEOUT):
                return connection.recv()
            self._process.kill()
            outcome = Outcome("timeout", f"no result after {TIMEOUT:.0f} s")
        except (EOFError, OSError):
            self._process.join()
            outcome = Outcome("crash", f"the process ended with code {self._process.exitcode}")
        self.close()
        return outcome

    def _start(self) -> Connection:
        self._connection, other = _context.Pipe()
        self._process = _context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        return self._connection

    def close(self) -> None:
        """End the child; the next case starts another."""
        if self._connection is not None:
            self._connection.close()
            self._process.join()
            self._connection = None


def _serve(connection: Connection) -> None:
    faulthandler.enable()
    while True:
        try:
            name, route = connection.recv()
        except EOFError:
            return
        connection.send(run(name, route))


def run_all(
    pairs: Iterable[tuple[str, str]],
    jobs: int,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[tuple[str, str], Outcome]:
    """Run (case, route) pairs in `jobs` children; the answer is sorted by pair."""
    waiting: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
    for pair in pairs:
        waiting.put(pair)
    outcomes: dict[tuple[str, str], Outcome] = {}

    def work() -> None:
        worker = Worker()
        while True:
            try:
                pair = waiting.get_nowait()
            except queue.Empty:
                break
            outcomes[pair] = worker.run(*pair)
            progress(len(outcomes))
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dict(sorted(outcomes.items()))
