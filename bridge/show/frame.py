"""The frame of each page of HTML: its head, and the styles in it."""

from pathlib import Path
from string import Template

_FOLDER = Path(__file__).parent


def framed(name: str, title: str, *styles: str, **parts: str) -> str:
    """A page that needs no other files. `name` is the file of its body, whose $names the `parts`
    replace, and `styles` are files of CSS. The title and the parts are text of HTML. The head says
    what made the page: a folder is written again only where it has such a page."""
    return Template(_text("frame.html")).substitute(
        name=name,
        title=title,
        style="\n".join(map(_text, styles)),
        body=Template(_text(name)).substitute(parts),
    )


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
