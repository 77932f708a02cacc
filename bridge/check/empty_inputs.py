"""Inputs without elements, tried in sessions of their own. Some kernels of engines divide by a
size, and crash or damage the session. The crashing engine's output is not shown: onnxruntime's LSTM
and GRU without steps print "terminate called"."""

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
    """The numbers of the inputs that every file takes. The second part says how another file fails
    with an input that the first file takes, unless that file cannot be told such a call. Each file
    comes with its label. The inputs `usual`, which all files take, run first to measure their
    time."""
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
