"""How much the tests run: a sample, the same each time, or everything with `pytest --whole`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

WHOLE = False
"""Whether everything runs; `tests/conftest.py` sets it before test files are read."""


def sample(names: Iterable[str], part: int) -> list[str]:
    """One of `part` names, chosen by their checksums."""
    return [name for name in names if WHOLE or crc32(name.encode()) % part == 0]


def spread(names: Iterable[str], part: int, kind: Callable[[str], str]) -> list[str]:
    """The first name of each kind, and one of `part` of the others."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        place = seen[kind(name)] = seen.get(kind(name), -1) + 1
        if WHOLE or place % part == 0:
            found.append(name)
    return found


def thinned(cases: Iterable[T], part: int, first: int = 0) -> list[T]:
    """Every `part`th case, from one of the first ones on."""
    return list(cases) if WHOLE else list(cases)[first::part]


def few(count: int, part: int) -> int:
    """How many of `count` are made."""
    return count if WHOLE else -(-count // part)
