"""Tables of HTML, as notebooks show them."""

from collections.abc import Mapping, Sequence
from html import escape

from bridge.errors import printable

_SHOWN = 50  # rows of a table


def as_html(title: str, tables: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """A title and tables of two columns, by their heads. Long tables are cut, and empty ones left
    out."""
    return (
        f"<p>{_shown(title)}</p>{''.join(_table(*table) for table in tables.items() if table[1])}"
    )


def _table(head: str, rows: Sequence[tuple[str, str]]) -> str:
    rest = [("...", f"{len(rows) - _SHOWN} more")] if len(rows) > _SHOWN else []
    cells = "".join(
        f"<tr><td>{_shown(first)}</td><td>{_shown(second)}</td></tr>"
        for first, second in (*rows[:_SHOWN], *rest)
    )
    return f"<table><tr><th>{_shown(head)}</th><th></th></tr>{cells}</table>"


def _shown(text: str) -> str:
    return escape(printable(text))
