"""Judges programs in processes of their own, a few at a time: an engine may end its process, and a
Loop may have no end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, TypeVar

TIMEOUT = 60.0  # seconds for a program

Item = TypeVar("Item")


def judged(
    judge: Callable[[Item], dict[str, str]], items: Iterable[Item], jobs: int = 2
) -> Iterator[tuple[Item, dict[str, str]]]:
    """Each item with its verdicts, in order."""
    items = list(items)
    with ThreadPoolExecutor(jobs) as pool:
        yield from zip(items, pool.map(lambda item: _alone(judge, item), items), strict=True)


def _alone(judge: Callable[[Item], dict[str, str]], item: Item) -> dict[str, str]:
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe(duplex=False)
    child = context.Process(target=_send, args=(far, judge, item))
    child.start()
    far.close()
    try:
        if near.poll(TIMEOUT):
            verdicts: dict[str, str] = near.recv()
            return verdicts
        return {"process": "has no end"}
    except EOFError:
        child.join()
        return {"process": f"ends with {child.exitcode}"}
    finally:
        child.kill()
        child.join()


def _send(connection: Connection, judge: Callable[[Any], dict[str, str]], item: Any) -> None:
    connection.send(judge(item))
