"""The XML of an IR, read as a stream: each layer is taken over when it has been read, so that
little more than the graph itself is in memory at once.

libxml2 refuses a tree with more than 2,048 nested elements, which seven hundred nested Ifs have.
So lxml gives what it reads to the builder of Python's own elements, which nest without end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.errors import InvalidModelError
from bridge.limits import budget

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

PIECE = 1 << 16
"""The bytes of one read."""

LONGEST = 1 << 26
"""Bytes of one tag or text."""

STRANGERS = 1000
"""A file with more unknown elements of a `<net>` than this is no IR."""

_TAKEN = ("layers", "edges")
"""The sections of a `<net>` whose elements are taken over."""


def select(elements: Iterable[XmlElement], *tags: str) -> list[XmlElement]:
    """Selects the elements with the first tag, their children with the second tag, and so on; `*`
    is any tag."""
    first, *further = tags
    found = [element for element in elements if first in ("*", element.tag)]
    return select((c for e in found for c in e), *further) if further else found


Take = Callable[["XmlElement", "XmlElement"], None]


def read_document(path: Path, take: Take) -> XmlElement:
    """The root of an IR. Each element of its `<layers>` and `<edges>` goes to `take`, with the
    root, and is then dropped.

    InvalidModelError for a file that is no XML, or has a document type, because its entities could
    expand without end. LimitError if it has too many elements.
    """
    from lxml import etree  # IR is written without

    # Without a document type, XML's own five entities are the only ones. A parser that does not
    # resolve entities gives its target `&#38;` for `&amp;`.
    document = _Document(path)
    parser = etree.XMLParser(
        target=document,
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
                document.hand_over(take)
        root: XmlElement = parser.close()
        document.hand_over(take, is_whole=True)
        return root
    except OSError as error:
        raise InvalidModelError(f"{path}: cannot be read: {error.strerror}") from error
    except etree.XMLSyntaxError as error:
        raise InvalidModelError(f"{path}: is no whole XML file: {error.msg}") from None


class _Document:
    """The document so far: the target that lxml calls for the elements and texts of a file. Ends
    and texts go to the builder without a call of Python: they are most of what is read."""

    def __init__(self, path: Path) -> None:
        from xml.etree.ElementTree import TreeBuilder

        builder = TreeBuilder()
        self._path = path
        self._root: XmlElement | None = None
        self._begin = builder.start
        self.data = builder.data
        self.end = builder.end
        self.close = builder.close

    def doctype(self, *_: object) -> None:
        """Refuses a document type."""
        raise InvalidModelError(f"{self._path}: is no OpenVINO IR: it has a document type")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begins an element. lxml gives one without attributes no dictionary."""
        element = self._begin(tag, attributes or {})  # type: ignore[arg-type]
        if self._root is None:
            self._root = element
            if tag != "net":
                raise InvalidModelError(
                    f"{self._path}: is no OpenVINO IR: its root is <{tag}>, not <net>"
                )

    def hand_over(self, take: Take, is_whole: bool = False) -> None:
        """Gives away the elements that have been read. The last one may still be open, unless the
        document `is_whole`."""
        root = self._root
        if root is None:
            return
        strangers = len(root)
        for section in root:
            if section.tag in _TAKEN:
                closed = is_whole or section is not root[-1]
                count = len(section) if closed else max(len(section) - 1, 0)
                for element in section[:count]:
                    take(root, element)
                del section[:count]
            elif section.tag != "rt_info":
                strangers += len(section)
            if strangers > STRANGERS:
                raise InvalidModelError(
                    f"{self._path}: is no OpenVINO IR: its <net> has many elements like "
                    f"<{section.tag}>"
                )
