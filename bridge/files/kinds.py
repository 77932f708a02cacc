"""Kinds of files, which are told by their first bytes."""

import re
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import UsageError
from bridge.files import opened, source_format

_PROLOG = ((b"<?", b"?>"), (b"<!--", b"-->"))


@dataclass(frozen=True)
class Kind:
    """A kind of file: its `name`, how one begins, and the suffix that its name must have."""

    name: str
    begins: re.Pattern[bytes]
    suffix: str = ""

    def is_at(self, path: Path) -> bool:
        """Whether the regular file at a path is of this kind, or empty."""
        try:
            with opened(path) as file:
                head = file.read(4096)
        except OSError:
            return False
        return not head or self.begins.match(_without_prolog(head)) is not None


def _without_prolog(head: bytes) -> bytes:
    """The first bytes of a file, without the declaration, the comments and the white space that may
    stand before the first element of XML."""
    rest = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    while (end := next((e for b, e in _PROLOG if rest.startswith(b)), None)) is not None:
        _, found, rest = rest.partition(end)
        if not found:
            return head
        rest = rest.lstrip()
    return rest if rest.startswith(b"<") else head


JUNIT = Kind("a report of JUnit's", re.compile(rb"(?i)<testsuites?[\s>/]"))
PAGE = Kind("a page in HTML", re.compile(rb"(?i)<!doctype html|<html[\s>]"), ".html")
INDEX = Kind(
    "an index of Bridge's",
    re.compile(
        rb'<!doctype html>\s<html lang="en">\s<head>\s<meta charset="utf-8">\s'
        rb'<meta name="generator" content="Bridge, folder.html">'
    ),
    ".html",
)
SUMMARY = Kind("a summary of Bridge's", re.compile(rb"### Bridge\n"), ".md")
PICTURE = Kind("an SVG", re.compile(rb"(?i)(?:<!doctype svg[^>]*>\s*)?<svg[\s>]"), ".svg")
ARRAYS = Kind("an .npz", re.compile(rb"PK\x03\x04"), ".npz")
IR = Kind("an IR", re.compile(rb"(?i)<net[\s>]"), ".xml")
ONNX = Kind("an ONNX model", re.compile(rb"\x08"), ".onnx")

_CLEAR = (Kind("an archive", ARRAYS.begins), ONNX, Kind("XML", re.compile(rb"<")))
"""Kinds that no other file begins like by chance."""

LEAVE = "choose another name, or say that it may go (`force=True`)"


def kind_of_model(path: Path) -> Kind:
    """The kind of a model's file, by its suffix."""
    return IR if source_format(path) == "ir" else ONNX


def _text_for(own: Kind) -> Kind:
    """Text at the place of an IR, which begins with an element."""
    return Kind("text", re.compile(rb"[^<\0]*[^<\s\0]" if own is IR else rb"(?!)"))


def require_kind(target: Path, force: bool) -> None:
    """Raises UsageError if a file of clearly another kind stands at a model's destination, and
    `force` does not allow to replace it."""
    own = kind_of_model(target)
    if force or not target.is_file() or own.is_at(target):
        return
    other = next((kind for kind in (*_CLEAR, _text_for(own)) if kind.is_at(target)), None)
    if other is not None:
        raise UsageError(
            f"{target}: would be overwritten, but is {other.name}, not {own.name}; {LEAVE}"
        )
