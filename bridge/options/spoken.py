"""Options in messages: the library says keywords, in backticks, and a command says its options.

`force=True` is `--force` on the command line, `device="ANY"` is `--device ANY`, and
`input_shapes={"x": [None, 3]}` is `--input-shape 'x=[?,3]'`. Backticks around other words stay.
"""

import ast
import re
from functools import cache
from shlex import quote

from bridge.options.option import declared

_KEYWORD = re.compile(r"`([a-z_0-9]+)(?:=([^`]*))?`")


def keyword(name: str, value: object) -> str:
    """A keyword with a value, for a message."""
    return f"`{name}={value!r}`"


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
    try:
        given = ast.literal_eval(value)
    except (ValueError, SyntaxError):  # a name with such a character
        return str(found[0])
    if not isinstance(given, dict):
        return f"{flag} {given}"
    return " ".join(f"{flag} {quote(f'{name}={_word(one)}')}" for name, one in given.items())


def _word(value: object) -> str:
    """A value as the command line takes it: of a dimension that is None, any size."""
    if isinstance(value, list):
        return f"[{','.join('?' if dim is None else str(dim) for dim in value)}]"
    return str(value)


@cache
def _flags() -> dict[str, str]:
    """The names of options on the command line, by the keyword."""
    from bridge.options import CheckOptions

    return {
        name: option.flags[0] if option.flags else f"--{name.replace('_', '-')}"
        for name, option in declared(CheckOptions)
        if option.takes is not None
    }
