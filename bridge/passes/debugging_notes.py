"""Drops metadata that exporters write for debugging: stack traces, module scopes, signatures.

PyTorch's exporter writes most of them under keys that start with `pkg.`, for each node and value.
They would fill three quarters of an IR, and they contain paths on the exporter's machine. People
ship IR files, so an IR only gets them if the user asks for them.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping

from bridge.errors import amount
from bridge.neutral.extras import Note
from bridge.neutral.graph import Model
from bridge.passes.context import Context

PREFIX = "pkg."
"""The keys of a tool's own metadata start with this: `pkg.torch.onnx.stack_trace`."""

KEYS = frozenset({"namespace"})
"""Keys without the prefix, from PyTorch's exporter before it had the prefix."""

_TRACE = re.compile(r'\.py(?:\(\d+\)|", line \d+|:\d+)')
"""A place in a Python file, as stack traces have it."""


def drop_debugging_notes(model: Model, context: Context) -> None:
    """Drops, in place, the metadata for debugging of the model, its graphs, nodes and values. The
    report counts it."""
    dropped = [_drop(model.metadata)]
    extras = model.extras.get("onnx")
    notes = extras.get("notes") if extras is not None else None
    if notes:
        dropped += map(_drop_of_note, notes.values())
        for path in [path for path, note in notes.items() if not note]:
            del notes[path]
    if count := sum(dropped):
        context.report.notes.append(
            f"{amount(count, 'entry', 'entries')} of metadata that a tool wrote for debugging, as "
            "stack traces, left out; `keep_metadata=True` keeps such metadata"
        )


def _drop_of_note(note: Note) -> int:
    """Drops the debugging entries of a note; returns their number."""
    count = 0
    if (entries := note.get("metadata_props")) is not None:
        count = _drop(entries)
        if not entries:
            del note["metadata_props"]
    if _TRACE.search(note.get("doc_string", "")):
        del note["doc_string"]
        count += 1
    return count


def _drop(entries: MutableMapping[str, str]) -> int:
    """Drops the entries for debugging; how many there were."""
    gone = [key for key in entries if key.startswith(PREFIX) or key in KEYS]
    for key in gone:
        del entries[key]
    return len(gone)
