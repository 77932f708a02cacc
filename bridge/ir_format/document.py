"""The XML of an IR, read as a stream: each layer is taken over when it has been read, so that
little more than the graph itself is in memory at once.

libxml2 refuses a tree with more than 2,048 nested elements, which seven hundred nested Ifs have.
So lxml calls a target for all it reads, and the target keeps elements of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.errors import InvalidModelError
from bridge.limits import budget

PIECE = 1 << 16
"""The bytes of one read."""

LONGEST = 1 << 26
"""Bytes of one tag or text."""

STRANGERS = 1000
"""A file with more unknown elements of a `<net>` than this is no IR."""


@dataclass(slots=True, eq=False)
class XmlElement:
    """An element, with the text before its first child and the text behind its end."""

    tag: str
    attributes: Mapping[str, str]
    children: list[XmlElement] = field(default_factory=list)
    text: str = ""
    tail: str = ""

    def get(self, name: str, default: str = "") -> str:
        """An attribute."""
        return self.attributes.get(name, default)


def select(elements: Iterable[XmlElement], *tags: str) -> list[XmlElement]:
    """Selects the elements with the first tag, their children with the second tag, and so on; `*`
    is any tag."""
    first, *further = tags
    found = [element for element in elements if first in ("*", element.tag)]
    return select((c for e in found for c in e.children), *further) if further else found


Take = Callable[[XmlElement, XmlElement], None]


def read_document(path: Path, take: Take) -> XmlElement:
    """The root of an IR. Each element of its `<layers>` and `<edges>` goes to `take`, with the
    root, and is then dropped.

    InvalidModelError for a file that is no XML, or has a document type, because its entities could
    expand without end. LimitError if it has too many elements.
    """
    from lxml import etree  # IR is written without

    # Without a document type, XML's own five entities are the only ones. A parser that does not
    # resolve entities gives its target `&#38;` for `&amp;`.
    parser = etree.XMLParser(
        target=_Document(path, take),
        huge_tree=True,
        resolve_entities="internal",
        load_dtd=False,
        no_network=True,
    )
    elements = waiting = 0
    try:
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                elements += piece.count(b"<") - piece.count(b"</")
                budget().elements(elements, str(path))
                waiting = 0 if b">" in piece else waiting + len(piece)
                if waiting > LONGEST:
                    raise InvalidModelError(f"{path}: holds a text of more than {LONGEST} bytes")
                parser.feed(piece)
        root: XmlElement = parser.close()
        return root
    except OSError as error:
        raise InvalidModelError(f"{path}: cannot be read: {error.strerror}") from error
    except etree.XMLSyntaxError as error:
        raise InvalidModelError(f"{path}: is no whole XML file: {error.msg}") from None


class _Document:
    """The document so far: the target that lxml calls for the elements and texts of a file."""

    def __init__(self, path: Path, take: Take) -> None:
        self._path = path
        self._take = take
        self._open: list[XmlElement] = []
        self._root: XmlElement | None = None
        self._texts: list[str] = []
        self._strangers = 0

    def doctype(self, *_: object) -> None:
        """Refuses a document type."""
        raise InvalidModelError(f"{self._path}: is no OpenVINO IR: it has a document type")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begins an element."""
        self._end_text()
        element = XmlElement(tag, attributes)
        self._open.append(element)
        if self._root is None:
            self._root = element
            if tag != "net":
                raise InvalidModelError(
                    f"{self._path}: is no OpenVINO IR: its root is <{tag}>, not <net>"
                )

    def data(self, text: str) -> None:
        """Notes a text, or a part of one."""
        self._texts.append(text)

    def end(self, _: str) -> None:
        """Ends an element, which its parent keeps if it is not taken over."""
        self._end_text()
        element = self._open.pop()
        if not self._open:
            return
        parent = self._open[-1]
        if len(self._open) == 2 and parent.tag in ("layers", "edges"):
            self._take(self._open[0], element)
            return
        parent.children.append(element)
        if len(self._open) <= 2 and parent.tag != "rt_info":
            self._strangers += 1
            if self._strangers > STRANGERS:
                raise InvalidModelError(
                    f"{self._path}: is no OpenVINO IR: its <net> has many elements like "
                    f"<{element.tag}>"
                )

    def close(self) -> XmlElement | None:
        """Ends the document; its root."""
        return self._root

    def _end_text(self) -> None:
        if self._texts and self._open:
            parent, text = self._open[-1], "".join(self._texts)
            if parent.children:
                parent.children[-1].tail = text
            else:
                parent.text = text
        self._texts.clear()
