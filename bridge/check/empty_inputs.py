"""Inputs without elements, tried in a process of their own: some kernels of engines divide by a
size, and end the process with that."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.check.engines import Session
from bridge.check.isolation import Worker
from bridge.check.lines import shortened
from bridge.check.loading import engine_in, load
from bridge.check.outputs import Comparison
from bridge.errors import BridgeError

_SECONDS = 30.0  # for one run
_TIMES = 100.0  # as long as the longest run before it


@dataclass
class Trial:
    """How inputs went: `ran` are the numbers of those that every file took; `refused` says, of an
    input that the first file took, what another one did."""

    ran: list[int] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)


def tried(
    files: Sequence[tuple[str, Path]],
    feeds: Sequence[dict[str, Any]],
    usual: Sequence[dict[str, Any]],
) -> Trial:
    """Runs files, each with what it is called, with inputs. The first file, which takes the inputs
    `usual` too, is what the others are held to."""
    result = Trial()
    with closing(Worker()) as worker:
        runs = _Runs(worker, usual)
        for number, feed in enumerate(feeds):
            for place, (label, path) in enumerate(files):
                try:
                    runs.run(path, feed)
                except BridgeError as error:
                    if place:
                        result.refused[number] = f"{label}: {shortened(str(error)) or 'fails'}"
                    break
            else:
                result.ran.append(number)
    return result


class _Runs:
    """Loads files in the process of `worker`, and runs them."""

    def __init__(self, worker: Worker, usual: Sequence[dict[str, Any]]) -> None:
        self._engines = functools.cache(lambda kind: engine_in(worker, kind, _SECONDS, _TIMES))
        self._comparison = Comparison(0.0, 0.0, lambda note: None)
        self._usual = usual
        self._sessions: dict[Path, Session] = {}

    def run(self, path: Path, feed: dict[str, Any]) -> None:
        """Runs a file once; before that, in a new session, the usual inputs, for their time."""
        session = self._sessions.get(path)
        if session is None:
            session, _ = load(path, engines=self._engines)
            for usual in self._usual:
                session.run(self._comparison.renamed(usual, session))
            self._sessions[path] = session
        session.run(self._comparison.renamed(feed, session))
