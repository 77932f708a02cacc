"""What a check of many models found, as a page of HTML and as a summary in Markdown.

Both hold names of files and texts about models, which may be anything: all of them is escaped.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from bridge.errors import amount, printable
from bridge.release import release
from bridge.show.frame import framed

MOST_ROWS = 100
"""Models that a summary lists; GitHub takes 1 MiB of it."""

_LONGEST = 2000
"""Characters of a reason in a summary."""

_MARKDOWN = {ord(character): f"&#{ord(character)};" for character in "&<>\\`*_{}[]()#+-.!|~@:$^="}
"""Characters that Markdown, or GitHub's kind of it, gives a meaning."""


@dataclass(frozen=True)
class TableRow:
    """A model of a table: its `name`, its `verdict`, whether that is `good`, the `time`, a `line`
    that says why, the whole `text`, and the `link` to its own page, "" if it has none."""

    name: str
    verdict: str
    good: bool
    time: str
    line: str
    text: str
    link: str = ""


def counts_of(verdicts: Sequence[str]) -> str:
    """How many models there are, and how many of each verdict."""
    counts = Counter(verdicts)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    return f"{amount(len(verdicts), 'model')}: {said or 'nothing to do'}"


def as_page(rows: Sequence[TableRow]) -> str:
    """The page of a folder: a table with a search, and a link to the page of each model."""
    ordered = sorted(rows, key=lambda row: row.good)
    return framed(
        "folder.html",
        "Models · Bridge",
        "page.css",
        "folder.css",
        heading="Models · Bridge",
        counts=_html(counts_of([row.verdict for row in rows])),
        rows="\n".join(map(_row, ordered)),
        made=_html(f"Made by bridge check, {release() or 'not installed'}."),
    )


def _row(row: TableRow) -> str:
    name = f"<code>{_html(row.name)}</code>"
    name = f'<a href="{escape(row.link)}">{name}</a>' if row.link else name
    why = _html(row.line)
    if not row.good and "\n" in row.text:
        lines = "\n".join(map(_html, row.text.split("\n")))
        why = f"<details><summary>{why}</summary><pre>{lines}</pre></details>"
    kind = "good" if row.good else "bad"
    return (
        f'<tr><td>{name}</td><td class="{kind}">{_html(row.verdict)}</td>'
        f'<td class="time">{_html(row.time)}</td><td>{why}</td></tr>'
    )


def as_markdown(rows: Sequence[TableRow]) -> str:
    """The summary: the counts, and a table of the models that are not good, with the reasons."""
    bad = [row for row in rows if not row.good]
    lines = ["### Bridge", "", _markdown(counts_of([row.verdict for row in rows]))]
    if bad:
        lines += ["", "| model | verdict | why |", "| --- | --- | --- |"]
    for row in bad[:MOST_ROWS]:
        cells = (row.name, row.verdict, row.line[:_LONGEST])
        lines.append(f"| {' | '.join(map(_markdown, cells))} |")
    if len(bad) > MOST_ROWS:
        lines += ["", f"and {amount(len(bad) - MOST_ROWS, 'more model')}"]
    return "\n".join([*lines, ""])


def _html(text: str) -> str:
    return escape(printable(text))


def _markdown(text: str) -> str:
    return printable(text).translate(_MARKDOWN)
