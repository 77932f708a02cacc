"""The XML of an IR, read as a stream: what a layer says is taken over when it has been read, so
that little more than the graph itself is in memory at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from bridge.errors import InvalidModelError
from bridge.ir_format.text import Xml
from bridge.limits import budget

PIECE = 1 << 20
"""Bytes that are read at once."""

LONGEST = 1 << 26
"""Bytes of one tag or text."""

STRANGERS = 1000
"""Elements of a `<net>` that no IR has, from which on the file is none."""


def read_document(path: Path, take: Callable[[Xml, Xml], None]) -> Xml:
    """The root of an IR. Whole elements of `<layers>` and `<edges>` go to `take`, with the root,
    and are then dropped. InvalidModelError for what is no XML, or has a document type, whose
    entities could expand without end; LimitError where it has too many elements."""
    reading = _Reading(path, take)
    try:
        with path.open("rb") as file:
            for piece in _pieces(file.read, path):
                reading.feed(piece)
            return reading.close()
    except OSError as error:
        raise InvalidModelError(f"{path}: cannot be read: {error.strerror}") from error
    except (ElementTree.ParseError, expat.ExpatError, ValueError, LookupError) as error:
        raise InvalidModelError(f"{path}: is no whole XML file: {error}") from None


def _pieces(read: Callable[[int], bytes], path: Path) -> Iterator[bytes]:
    """The file piece by piece. A tag or text is in one of them, or two: the parser would look at
    what it has of it again and again."""
    while piece := read(PIECE):
        while b">" not in piece and (more := read(len(piece))):
            piece += more
            if len(piece) > LONGEST:
                raise InvalidModelError(f"{path}: holds a text of more than {LONGEST} bytes")
        yield piece


class _Reading:
    def __init__(self, path: Path, take: Callable[[Xml, Xml], None]) -> None:
        self.path = path
        self.take = take
        self.parser: Any = ElementTree.XMLPullParser(("start",))
        self.prolog: expat.XMLParserType | None = expat.ParserCreate()
        self.prolog.StartDoctypeDeclHandler = self._refuse_type
        self.prolog.StartElementHandler = self._end_prolog
        self.root: Xml = None
        self.elements = 0
        self.strangers = 0

    def feed(self, piece: bytes) -> None:
        """Reads on, and takes over what is whole."""
        if self.prolog is not None:
            try:
                self.prolog.Parse(piece)
            except _PrologEnds:
                self.prolog = None
        self.elements += piece.count(b"<") - piece.count(b"</")
        budget().elements(self.elements, str(self.path))
        self.parser.feed(piece)
        for _, element in self.parser.read_events():
            if self.root is None:
                self.root = element
                if element.tag != "net":
                    raise InvalidModelError(
                        f"{self.path}: is no OpenVINO IR: its root is <{element.tag}>, not <net>"
                    )
        if self.root is not None:
            self._take_over(whole=False)

    def close(self) -> Xml:
        """Takes over the rest; the root."""
        if self.prolog is not None:
            self.prolog.Parse(b"", True)
        self.parser.close()
        self._take_over(whole=True)
        return self.root

    def _take_over(self, whole: bool) -> None:
        """Hands over the elements that nothing will be added to any more: all but the last one of
        each parent, until the file is `whole`."""
        root = self.root
        for index, section in enumerate(root):
            ended = whole or index < len(root) - 1
            children = section if ended else section[:-1]
            if section.tag in ("layers", "edges"):
                for element in children:
                    self.take(root, element)
                del section[: len(children)]
            elif section.tag != "rt_info":
                self.strangers += len(children)
                del section[: len(children)]
        if self.strangers + len(root) > STRANGERS:
            raise InvalidModelError(
                f"{self.path}: is no OpenVINO IR: its <net> has many elements like <{root[0].tag}>"
            )

    def _refuse_type(self, *_: object) -> None:
        raise InvalidModelError(f"{self.path}: is no OpenVINO IR: it has a document type")

    def _end_prolog(self, *_: object) -> None:
        raise _PrologEnds


class _PrologEnds(Exception):
    pass
