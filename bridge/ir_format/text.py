"""Text of an XML file, built directly: a tree in memory is several times slower to write."""

from __future__ import annotations

import re

from bridge.ir_format.names import clean

_SPECIAL = re.compile(r"[^ !#-%'-;=?-~]")
_ESCAPES = {
    ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;", ord('"'): "&quot;",
    ord("\t"): "&#9;", ord("\n"): "&#10;", ord("\r"): "&#13;",
}  # fmt: skip


def attribute(value: str) -> str:
    """An attribute's value, escaped and in quotes."""
    if _SPECIAL.search(value) is None:
        return f'"{value}"'
    return f'"{clean(value).translate(_ESCAPES)}"'
