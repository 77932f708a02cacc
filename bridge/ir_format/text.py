"""The text of an XML file, laid out as OpenVINO lays it out.

It is built directly. lxml cannot write ` />` at the end of an empty element, as OpenVINO does, and
refuses more than 2,048 nested elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from bridge.neutral.xml_names import clean

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as XmlElement

Text: TypeAlias = "list[str | Text]"
"""Pieces of text, in lists as deep as the bodies. Joining the text of each body, or copying it into
the text of the graph around it, would take time that grows with the square of the depth."""


def pieces(text: Text) -> Iterator[str]:
    """The pieces, one after another."""
    stack = [iter(text)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            yield item
        else:
            stack.pop()


_SPECIAL = re.compile(r"[^ !#-%'-;=?-~]")
_TEXT = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_ATTRIBUTE = {**_TEXT, '"': "&quot;", "\t": "&#9;", "\n": "&#10;"}


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    """A text with escapes for some characters, "&" first. One `str.replace` for each is far faster
    than `str.translate` if few of them are there."""
    for character, escape in escapes.items():
        text = text.replace(character, escape)
    return text


def attribute(value: str) -> str:
    """An attribute's value, escaped and in quotes."""
    if _SPECIAL.search(value) is None:
        return f'"{value}"'
    return f'"{_escaped(clean(value), _ATTRIBUTE)}"'


def inner_xml(element: XmlElement) -> str:
    """The elements inside an element, as text."""
    return "".join(map(as_text, element))


def as_text(element: XmlElement) -> str:
    """An element as text, however deep."""
    parts: list[str] = []
    stack: list[XmlElement | str] = [element]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        values = "".join(f' {k}="{_escaped(v, _ATTRIBUTE)}"' for k, v in item.attrib.items())
        tail = _escaped(item.tail or "", _TEXT) if item is not element else ""
        if not len(item) and not item.text:
            parts.append(f"<{item.tag}{values}/>{tail}")
            continue
        parts.append(f"<{item.tag}{values}>{_escaped(item.text or '', _TEXT)}")
        stack.append(f"</{item.tag}>{tail}")
        stack.extend(reversed(item))
    return "".join(parts)
