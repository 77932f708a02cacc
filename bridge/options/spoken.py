"""Options in messages: the library says keywords, in backticks, and a command says its options.

`force=True` is `--force` on the command line, `device="ANY"` is `--device ANY`, and
`limits={"nodes": 9}` is `--limit nodes=9`. Backticks around other words stay.
"""

from __future__ import annotations

import json
import re
from functools import cache

from bridge.options.option import declared

_KEYWORD = re.compile(r"`([a-z_0-9]+)(?:=([^`]*))?`")


def as_options(text: str) -> str:
    """A message of the library with the command line's options in place of the keywords."""
    return _KEYWORD.sub(_option, text) if "`" in text else text


def _option(found: re.Match[str]) -> str:
    name, value = found[1], found[2]
    flag = _flags().get(name)
    if flag is None:
        return str(found[0])
    if value in (None, "True"):
        return flag
    given = json.loads(value)
    words = [f"{key}={each}" for key, each in given.items()] if isinstance(given, dict) else [given]
    return " ".join(f"{flag} {word}" for word in words)


@cache
def _flags() -> dict[str, str]:
    """The names of options on the command line, by the keyword."""
    from bridge.options import CheckOptions

    return {
        name: option.flags[0] if option.flags else f"--{name.replace('_', '-')}"
        for name, option in declared(CheckOptions)
        if option.takes is not None
    }
