"""The text of an XML file, laid out as OpenVINO lays it out.

It is built directly. lxml has no way to write ` />` at the end of an empty element, as OpenVINO
does, and refuses elements deeper than 2,048 within one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from bridge.ir_format.names import clean

if TYPE_CHECKING:
    from bridge.ir_format.document import Element

Text: TypeAlias = "list[str | Text]"
"""Pieces of text, in lists as deep as the bodies: to join those of each body, or to copy them into
those of the graph around it, would take time that grows with the square of the depth."""


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
_ESCAPES = {
    ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;",
    ord("\t"): "&#9;", ord("\n"): "&#10;", ord("\r"): "&#13;",
}  # fmt: skip
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})


def attribute(value: str) -> str:
    """An attribute's value, escaped and in quotes."""
    if _SPECIAL.search(value) is None:
        return f'"{value}"'
    return f'"{clean(value).translate(_ESCAPES)}"'


def inner_xml(element: Element) -> str:
    """The elements inside an element, as text."""
    return "".join(map(as_text, element.children))


def as_text(element: Element) -> str:
    """An element as text, however deep."""
    parts: list[str] = []
    stack: list[Element | str] = [element]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        values = "".join(f' {k}="{v.translate(_ESCAPES)}"' for k, v in item.attributes.items())
        tail = item.tail.translate(_TEXT) if item is not element else ""
        if not item.children and not item.text:
            parts.append(f"<{item.tag}{values}/>{tail}")
            continue
        parts.append(f"<{item.tag}{values}>{item.text.translate(_TEXT)}")
        stack.append(f"</{item.tag}>{tail}")
        stack.extend(reversed(item.children))
    return "".join(parts)
