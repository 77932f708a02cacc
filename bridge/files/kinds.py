"""Kinds of files, which are told by their first bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import UsageError
from bridge.files import source_format

_XML = rb"(?si)\A(?:\xef\xbb\xbf)?(?:\s|<\?.*?\?>|<!--.*?-->)*"


@dataclass(frozen=True)
class Kind:
    """A kind of file: its `name`, how one begins, and the suffix that its name must have."""

    name: str
    begins: re.Pattern[bytes]
    suffix: str = ""

    def is_at(self, path: Path) -> bool:
        """Whether the regular file at a path is of this kind, or empty."""
        try:
            with path.open("rb") as file:
                head = file.read(4096)
        except OSError:
            return False
        return not head or self.begins.match(head) is not None


JUNIT = Kind("a report of JUnit's", re.compile(_XML + rb"<testsuites?[\s>/]"))
PAGE = Kind("a page in HTML", re.compile(_XML + rb"(?:<!doctype html|<html[\s>])"), ".html")
PICTURE = Kind("an SVG", re.compile(_XML + rb"(?:<!doctype svg[^>]*>\s*)?<svg[\s>]"), ".svg")
ARRAYS = Kind("an .npz", re.compile(rb"PK\x03\x04"), ".npz")
IR = Kind("an IR", re.compile(_XML + rb"<net[\s>]"), ".xml")
ONNX = Kind("an ONNX model", re.compile(rb"\x08"), ".onnx")

_CLEAR = (Kind("an archive", ARRAYS.begins), ONNX, Kind("XML", re.compile(_XML + rb"<")))
"""Kinds that no other file begins like by chance."""

LEAVE = "choose another name, or say that it may go (`force=True`)"


def kind_of_model(path: Path) -> Kind:
    """The kind of a model's file, by its suffix."""
    return IR if source_format(path) == "ir" else ONNX


def require_kind(target: Path, force: bool) -> None:
    """Raises UsageError if a file of clearly another kind stands at a model's destination, and
    `force` does not allow to replace it."""
    own = kind_of_model(target)
    if force or not target.is_file() or own.is_at(target):
        return
    other = next((kind for kind in _CLEAR if kind.is_at(target)), None)
    if other is not None:
        raise UsageError(
            f"{target}: would be overwritten, but is {other.name}, not {own.name}; {LEAVE}"
        )
