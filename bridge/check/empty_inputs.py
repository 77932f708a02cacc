"""Inputs without elements, tried in sessions that nothing else runs in: some kernels of engines
divide by a size, and end their process with that, or leave something behind. What an engine says
when it ends is not shown: onnxruntime's LSTM and GRU, of no step, say "terminate called"."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.check.engines import Session, UndefinedCallError
from bridge.check.lines import shortened
from bridge.check.loading import hushed, load
from bridge.check.outputs import Comparison
from bridge.errors import BridgeError


def tried(
    files: Sequence[tuple[str, Path]],
    feeds: Sequence[dict[str, Any]],
    usual: Sequence[dict[str, Any]],
) -> tuple[list[int], dict[int, str]]:
    """The numbers of the inputs that every file takes, and by the number of one that the first file
    takes what another one did, unless it cannot be told such a call. Each file stands with what it
    is called. What all take anyhow, `usual`, runs first, for its time."""
    comparison = Comparison(0.0, 0.0, lambda note: None)
    sessions: dict[Path, Session] = {}
    ran, refused = list[int](), dict[int, str]()
    with hushed():
        for number, feed in enumerate(feeds):
            for label, path in files:
                try:
                    due = [feed]
                    if path not in sessions:
                        sessions[path], _ = load(path)
                        due = [*usual, feed]
                    for one in due:
                        sessions[path].run(comparison.renamed(one, sessions[path]))
                except BridgeError as error:
                    if label and not isinstance(error, UndefinedCallError):
                        refused[number] = f"{label}: {shortened(str(error)) or 'fails'}"
                    break
            else:
                ran.append(number)
    return ran, refused
