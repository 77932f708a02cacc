"""Drops metadata that exporters write for debugging: stack traces, module scopes, signatures.

PyTorch's exporter writes most of them under keys that start with `pkg.`, for each node and value.
They would fill three quarters of an IR, and they contain paths on the exporter's machine. People
ship IR files, so an IR only gets them if the user asks for them.
"""

import re
from collections.abc import Mapping

from bridge.errors import amount
from bridge.neutral.extras import Note
from bridge.neutral.graph import Model
from bridge.passes.applies import applies, both, reads, without
from bridge.passes.context import Context

PREFIX = "pkg."
"""The keys of a tool's own metadata start with this: `pkg.torch.onnx.stack_trace`."""

KEYS = frozenset({"namespace"})
"""Keys without the prefix, from PyTorch's exporter before it had the prefix."""

_TRACE = re.compile(r'\.py(?:\(\d+\)|", line \d+|:\d+)')
"""A place in a Python file, as stack traces have it."""


@applies(both(reads("onnx"), without("keep_metadata")))
def drop_debugging_notes(model: Model, context: Context) -> None:
    """Drops, in place, the metadata for debugging of the model, its graphs, nodes and values. The
    report counts it. Notes are made anew, because the user's model may share them."""
    kept = _kept(model.metadata)
    count = len(model.metadata) - len(kept)
    model.metadata = kept
    extras = model.extras.get("onnx")
    if extras is not None and (notes := extras.get("notes")):
        left: dict[str, Note] = {}
        for path, note in notes.items():
            plain, dropped = _plain(note)
            count += dropped
            if plain:
                left[path] = plain
        model.extras["onnx"] = {**extras, "notes": left}
    if count:
        line = (
            f"{amount(count, 'entry', 'entries')} of metadata that a tool wrote for debugging, as "
            "stack traces, left out; `keep_metadata=True` keeps such metadata"
        )
        context.report.notes.append(line)
        context.report.details.append(line)


def _plain(note: Note) -> tuple[Note, int]:
    """A note without the debugging entries, and the number of these."""
    count = 0
    if entries := note.get("metadata_props"):
        kept = _kept(entries)
        count = len(entries) - len(kept)
        if count:
            note = {**note, "metadata_props": kept}
            if not kept:
                del note["metadata_props"]
    if _TRACE.search(note.get("doc_string", "")):
        note = note.copy()
        del note["doc_string"]
        count += 1
    return note, count


def _kept(entries: Mapping[str, str]) -> dict[str, str]:
    """The entries not for debugging."""
    return {k: v for k, v in entries.items() if not k.startswith(PREFIX) and k not in KEYS}
