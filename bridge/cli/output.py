"""The output of the commands: errors, sizes, tables, and progress on a terminal."""

import errno
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError, printable, text_of
from bridge.options.spoken import as_options
from bridge.release import release
from bridge.report import Report

DEFECT = "This is a defect of Bridge; please report it with the model, if you may share it."
DEBUG = "\n--debug shows the traceback."


SHORTAGE = (
    "there is not enough memory for this model; free some, or use a machine or a limit (ulimit, a "
    "container's) that has more"
)

TOO_MANY_FILES = "too many files are open; allow more at once (ulimit -n)"

_SHORTAGES = (
    "bad_alloc",
    "can't start new thread",
    "cannot allocate memory",
    "failed to map segment",
)


def is_shortage(error: BaseException) -> bool:
    """Whether an error says, in one of the words of libraries, that there is too little memory."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    text = str(error).lower()
    return any(words in text for words in _SHORTAGES)


def echo(*lines: str, aside: bool = False) -> None:
    """Prints lines at once: to the standard output, or `aside` to the standard error."""
    print(as_options(text_of(lines)), flush=True, file=sys.stderr if aside else None)


def echo_json(data: Any, aside: bool = False) -> None:
    """Prints a document at once, in ASCII; the last that a command prints there."""
    text = json.dumps(spoken(data), indent=2).replace("##[", "\\u0023#[")  # see `printable`
    print(text, flush=True, file=sys.stderr if aside else None)


_SENTENCES = frozenset({
    "assumed", "defaults", "error", "failures", "notes", "problem", "pruned", "reason", "refused",
    "selected", "specialized", "symptom", "text", "told", "why",
})  # fmt: skip
"""The keys whose values are messages. Values of other keys may be names, which stay."""


def document(format: int = 1, **data: Any) -> dict[str, Any]:
    """Data as a document of JSON, with the version of Bridge and of the document's format."""
    return {"bridge": release(), "format": format, **data}


def spoken(data: Any, says: bool = False) -> Any:
    """Data of JSON whose messages name options of the command line. `says` is for one message."""
    if isinstance(data, str):
        return as_options(data) if says else data
    if isinstance(data, dict):
        return {key: spoken(value, says or key in _SENTENCES) for key, value in data.items()}
    return [spoken(one, says) for one in data] if isinstance(data, list | tuple) else data


class Defect(BridgeError):
    """An error that Bridge did not foresee, as one that asks to report it."""


def told(error: Exception) -> BridgeError:
    """The error to print for any exception."""
    if isinstance(error, BridgeError):
        error.args = tuple(map(as_options, error.args))
        return error
    if is_shortage(error):
        return BridgeError(SHORTAGE)
    if isinstance(error, OSError):
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return BridgeError(TOO_MANY_FILES)
        return BridgeError(f"{error.filename or 'the output'}: {error.strerror or error}")
    return Defect(f"{type(error).__name__}: {error}".rstrip(": "), DEFECT)


def report_error(error: Exception, debug: bool) -> None:
    """Prints an error as one block, if somebody reads it."""
    text, title = str(told(error)), "Error"
    if isinstance(told(error), Defect):
        text, title = f"{text}{'' if debug else DEBUG}", "Internal error"
    with suppress(OSError):
        if debug:
            echo(*"".join(traceback.format_exception(error)).split("\n"), aside=True)
        if sys.stderr.isatty() and os.name == "posix" and not os.environ.get("NO_COLOR"):
            title = f"\x1b[1;31m{title}\x1b[0m"
        print(f"{title}: {text}", file=sys.stderr, flush=True)


def error_as_json(error: Exception) -> dict[str, Any]:
    """An error that ends a command as JSON, beside its `known` facts."""
    what = told(error)
    text = {"kind": type(what).__name__, "text": str(what)}
    return {**document(), **(what.known or {}), "error": text}


def size_of(count: int) -> str:
    """A number of bytes for people: `815 B`, `1.2 MB`."""
    if count < 1000:
        return f"{count} B"
    size, unit = count / 1000, 0
    while size >= 999.95 and unit < 2:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {('kB', 'MB', 'GB')[unit]}"


@contextmanager
def progress(text: str, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Shows the progress of long work: on a terminal always, elsewhere each minute. Gives the
    function to call with it."""
    if quiet:
        yield lambda step: None
        return
    if not sys.stderr.isatty():
        from bridge.cli.heartbeat import heartbeat

        with heartbeat(text, lambda line: echo(line, aside=True)) as tell:
            yield tell
        return
    from rich.console import Console
    from rich.markup import escape

    text = printable(text)
    with Console(stderr=True).status(escape(text)) as status:
        yield lambda step: status.update(escape(f"{text}: {printable(step)}"))


def write_text(path: Path, text: str) -> None:
    """Writes a file of text, whole or not at all."""
    from bridge.files.atomic_write import whole

    with whole(path, notes=[]) as (part,):
        part.write_text(text, encoding="utf-8", newline="\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Prints a table: drawn on a terminal, else with columns aligned by spaces."""
    rows = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _drawn(head, rows, title)
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    if title:
        echo(title)
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        echo("  ".join(cells).rstrip())


def _drawn(head: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    drawn = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    for name in head:
        drawn.add_column(name)
    for row in rows:
        drawn.add_row(*row)
    Console(markup=False, highlight=False).print(drawn)


def report_as_json(report: Report) -> dict[str, Any]:
    """The report of a conversion, for scripts."""
    lists = ("specialized", "pruned", "assumed", "selected", "believed", "notes")
    return document(
        source=report.source,
        files=[
            {"name": str(path), "size": path.stat().st_size if path.exists() else None}
            for path in report.files
        ],
        **{name: getattr(report, name) for name in lists},
        quirks=[{"name": name, "place": place} for name, place in report.quirks],
    )
