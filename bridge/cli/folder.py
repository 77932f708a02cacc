"""The folder of a report about many models: a table, a summary, and a page for each model."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from bridge.cli.outcome import Outcome
from bridge.cli.output import write_text
from bridge.errors import BridgeError, UsageError
from bridge.files import kinds
from bridge.show.folder import TableRow, as_markdown, as_page

INDEX = "index.html"
SUMMARY = "summary.md"
PAGES = "models"


def require_folder(folder: Path, force: bool) -> None:
    """Makes the folder of a report. UsageError if it holds other files and `force` does not allow
    to write among them."""
    if folder.suffix.lower() == ".html" or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder}: --report of many models is a folder")
    for path in (folder / INDEX, folder / SUMMARY, folder / PAGES):
        if path.is_symlink():
            raise UsageError(f"{path}: is a link, and would lead out of the folder of the report")
    is_own = kinds.INDEX.is_at(folder / INDEX)
    if folder.is_dir() and any(folder.iterdir()) and not (force or is_own):
        raise UsageError(f"{folder}: holds other files; {kinds.LEAVE}")
    summary = folder / SUMMARY
    if summary.exists() and not (force or kinds.SUMMARY.is_at(summary)):
        raise UsageError(f"{summary}: is not {kinds.SUMMARY.name}; {kinds.LEAVE}")
    try:
        (folder / PAGES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}") from None


def write_page(folder: Path, outcome: Outcome) -> None:
    """Writes the page of a model. A model that cannot be shown has none."""
    from bridge.library.api import load
    from bridge.show.outline import outline
    from bridge.show.page import page

    assert outcome.report is not None
    place = folder / _link(outcome)
    place.unlink(missing_ok=True)
    for model in (outcome.model, outcome.other):
        try:  # Where one of two is a form of the other, the check may have begun with either.
            text = page(outline(load(model), outcome.model), outcome.report) if model else ""
        except BridgeError:
            continue
        if text:
            write_text(place, text)
            return


def write_folder(folder: Path, outcomes: Sequence[Outcome]) -> None:
    """Writes the table and the summary."""
    rows = [_row(folder, outcome) for outcome in outcomes]
    write_text(folder / INDEX, as_page(rows))
    write_text(folder / SUMMARY, as_markdown(rows))


def _row(folder: Path, outcome: Outcome) -> TableRow:
    model, verdict, time, line = outcome.row
    name = f"{model} and {outcome.other}" if outcome.other else model
    link = _link(outcome)
    has_page = outcome.report is not None and (folder / link).is_file()
    return TableRow(name, verdict, outcome.good, time, line, outcome.text, link if has_page else "")


def _link(outcome: Outcome) -> str:
    """The place of a model's page in the folder. Any system takes the name. No other model has it,
    also if the folders of several parts are joined."""
    digest = hashlib.sha256(f"{outcome.model}\0{outcome.other}".encode(errors="replace"))
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(outcome.model).stem)[:60]
    return f"{PAGES}/{stem}-{digest.hexdigest()[:12]}.html"
