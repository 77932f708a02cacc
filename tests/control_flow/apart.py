"""Judges programs in processes of their own, a few at a time: an engine may crash, and a Loop may
never end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bridge.check.isolation import LostProcessError, Worker
from tests.control_flow.judge import Verdicts

TIMEOUT = 60.0  # seconds for a program

Item = TypeVar("Item")


def judged(
    judge: Callable[[Item], Verdicts], items: Iterable[Item], jobs: int = 2
) -> Iterator[tuple[Item, Verdicts]]:
    """Each item with its verdicts, in order."""
    items, own = list(items), threading.local()
    workers: list[Worker] = []

    def start() -> None:
        own.worker = Worker()
        workers.append(own.worker)

    with ThreadPoolExecutor(jobs, initializer=start) as pool:
        found = pool.map(lambda item: alone(own.worker, judge, item), items)
        yield from zip(items, found, strict=True)
    for worker in workers:
        worker.close()


def alone(worker: Worker, judge: Callable[[Item], Verdicts], item: Item) -> Verdicts:
    """The verdicts on an item; a lost process is a verdict, too."""
    try:
        verdicts: Verdicts = worker.call(judge, item, seconds=TIMEOUT)
    except LostProcessError as error:
        return {"process": str(error)}
    return verdicts
