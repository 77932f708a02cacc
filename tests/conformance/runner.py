"""Runs cases in child processes, so that an engine that crashes or hangs costs one case only."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable

from bridge.check import isolation
from bridge.check.isolation import LostProcessError

from .cases import cases
from .outcome import Outcome
from .routes import run

TIMEOUT = 60.0  # seconds for one case on one route


class Worker:
    """A process that runs cases one at a time. A new one replaces it if it crashes or hangs."""

    def __init__(self) -> None:
        self._worker = isolation.Worker()

    def run(self, name: str, route: str) -> Outcome:
        """Sends a case down a route in the process."""
        fresh = self._worker.process is None
        outcome = self._run(name, route)
        if outcome.kind == "crash" and not fresh:
            # An earlier case may have left the process broken; a new one shows whose fault it is.
            outcome = self._run(name, route)
        return outcome

    def _run(self, name: str, route: str) -> Outcome:
        try:
            outcome = self._worker.call(run, cases()[name], route, seconds=TIMEOUT)
        except LostProcessError as error:
            return Outcome("crash" if "ended" in str(error) else "timeout", str(error))
        assert isinstance(outcome, Outcome)
        return outcome

    def close(self) -> None:
        """Ends the process; the next case starts another."""
        self._worker.close()


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
