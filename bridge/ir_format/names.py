"""Tensor names and layer names: how ports list them, and how they become unique."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SEPARATOR = re.compile(r"(?<!\\),")
_FORBIDDEN = re.compile("[\0-\b\v\f\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def split_names(text: str) -> list[str]:
    """The names in a `names` or `output_names` attribute; `\\,` is a comma in a name."""
    names = [name.replace("\\,", ",") for name in _SEPARATOR.split(text) if name]
    return list(dict.fromkeys(names))


def join_names(names: Iterable[str]) -> str:
    """The attribute that lists names. OpenVINO escapes commas but no backslashes, so a name that
    ends in a backslash can only stand last; where several do, only the first of them is kept."""
    names = list(names)
    joined = ",".join(names)
    if "\\" not in joined and joined.count(",") < max(len(names), 1):
        return joined
    plain = [name for name in names if not name.endswith("\\")]
    awkward = [name for name in names if name.endswith("\\")]
    return ",".join(name.replace(",", "\\,") for name in plain + awkward[:1])


def clean(name: str) -> str:
    """A name without the characters that XML cannot hold."""
    return name if name.isprintable() else _FORBIDDEN.sub("\ufffd", name)


class UniqueNames:
    """Gives every layer of a graph a name of its own. Names that are `given` are not handed out
    to layers that have none."""

    def __init__(self, given: Iterable[str]) -> None:
        self._reserved = {clean(name) for name in given}
        self._used: set[str] = set()

    def take(self, wanted: str, otherwise: str) -> str:
        """`wanted` where it is free, else it or `otherwise` with a number behind it."""
        wanted = clean(wanted)
        if wanted and wanted not in self._used:
            self._used.add(wanted)
            return wanted
        base = name = wanted or clean(otherwise)
        number = 0
        while name in self._used or name in self._reserved:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return name
