"""Tensor names and layer names: how ports list them, and how they become unique."""

import re
from collections.abc import Iterable

from bridge.neutral.xml_names import clean

_SEPARATOR = r"(?<!\\),"


def split_names(text: str) -> list[str]:
    """The names in a `names` or `output_names` attribute; `\\,` is a comma in a name."""
    if not text:
        return []
    names = [name.replace("\\,", ",") for name in re.split(_SEPARATOR, text) if name]
    return list(dict.fromkeys(names))


def join_names(names: Iterable[str]) -> str:
    """The attribute that lists names. OpenVINO escapes commas but no backslashes, so a name that
    ends in a backslash can only be the last one. If several do, only the first of them is kept."""
    names = list(names)
    joined = ",".join(names)
    if "\\" not in joined and joined.count(",") < max(len(names), 1):
        return joined
    plain = [name for name in names if not name.endswith("\\")]
    awkward = [name for name in names if name.endswith("\\")]
    return ",".join(name.replace(",", "\\,") for name in plain + awkward[:1])


_NUMBERED = re.compile(r"(.+)_([1-9][0-9]{0,8})", re.DOTALL)


def is_numbered(name: str) -> bool:
    """Whether a name is one that numbering could have made."""
    return _NUMBERED.fullmatch(name) is not None


def unnumbered(name: str) -> tuple[str, int]:
    """A name without its number, and that; 0 if it has none."""
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found is not None else (name, 0)


class UniqueNames:
    """Gives every layer of a graph a unique name. Names in `given` belong to layers of the file, so
    unnamed layers do not get them. `numbered` collects the last number of layers with one name."""

    def __init__(self, given: frozenset[str], numbered: dict[str, int] | None = None) -> None:
        self._reserved = given
        self._used: set[str] = set()
        self._numbered = numbered if numbered is not None else {}
        self._last: dict[str, int] = {}

    def take(self, wanted: str, otherwise: str) -> str:
        """`wanted` if it is free, else it or `otherwise` with a number behind it."""
        wanted = clean(wanted)
        if wanted and wanted not in self._used:
            self._used.add(wanted)
            return wanted
        base = name = wanted or clean(otherwise)
        number = self._last.get(base, 0)
        while name in self._used or name in self._reserved:
            number += 1
            name = f"{base}_{number}"
        self._last[base] = number
        if wanted and number:
            self._numbered[base] = max(number, self._numbered.get(base, 0))
        self._used.add(name)
        return name
