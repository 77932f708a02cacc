"""Inputs without elements, tried in a process of their own: some kernels of engines divide by a
size, and end the process with that.

That process, `main`, says what happens line by line, so that what ended it is known: the number of
the input, that of the file, and how the run went.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.check.engines import Session
from bridge.check.lines import shortened
from bridge.check.loading import load
from bridge.check.outputs import Comparison
from bridge.errors import BridgeError

_SECONDS = 30  # for one process


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
    scratch: Path,
) -> Trial:
    """Runs files, each with what it is called, with inputs; the first file is what the others are
    held to. It takes the inputs `usual`, which show how long a run of it is."""
    given = scratch / "alone.pickle"
    given.write_bytes(pickle.dumps(([path for _, path in files], list(feeds), list(usual))))
    result, start = Trial(), 0
    while start < len(feeds):
        lines = _lines(given, start)
        for number, file, words in lines:
            if words == "ran" and file == len(files) - 1 and number not in result.refused:
                result.ran.append(number)
            elif words != "ran" and file:
                result.refused.setdefault(number, f"{files[file][0]}: {words}")
        # What was begun and did not end is where the process ended.
        start = lines[-1][0] + 1 if lines and lines[-1][2] == _ENDED else len(feeds)
    return result


_ENDED = "the engine ends the process"
_ENDLESS = f"the engine does not end within {_SECONDS} s"


def _lines(given: Path, start: int) -> list[tuple[int, int, str]]:
    """What a process says of the inputs from `start` on; a run that it did not get to the end of
    counts as what ended it, or as one that takes too long, behind which none is tried."""
    code = f"import {__name__} as alone; alone.main()"
    command = [sys.executable, "-c", code, str(given), str(start)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    late = False
    try:
        said = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, timeout=_SECONDS, check=False,
        ).stdout  # fmt: skip
    except subprocess.TimeoutExpired as error:
        said, late = error.stdout or b"", True
    found: dict[tuple[int, int], str] = {}
    for line in said.decode(errors="replace").splitlines():
        number, file, words = line.split(" ", 2)
        found[int(number), int(file)] = words
    if late and found:
        found[list(found)[-1]] = _ENDLESS
    return [(number, file, words) for (number, file), words in found.items()]


def main() -> None:
    """The process: its arguments are the file that says what to run, and the first input."""
    given, start = Path(sys.argv[1]), int(sys.argv[2])
    # Written by the process that started this one, into a folder of its own.
    files, feeds, usual = pickle.loads(given.read_bytes())
    comparison = Comparison(0.0, 0.0, lambda note: None)
    sessions: dict[int, Session] = {}
    for number in range(start, len(feeds)):
        for file, path in enumerate(files):
            print(number, file, _ENDED, flush=True)
            try:
                if file not in sessions:
                    sessions[file] = load(path)[0]
                    for taken in () if file else usual:
                        sessions[file].run(taken)
                sessions[file].run(comparison.renamed(feeds[number], sessions[file]))
            except BridgeError as error:
                print(number, file, shortened(str(error)) or "fails", flush=True)
                if not file:
                    break
            else:
                print(number, file, "ran", flush=True)
