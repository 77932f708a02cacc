"""What Bridge writes down about a model, in JSON, in the model's own metadata: it may have been
changed since, or be somebody else's."""

from __future__ import annotations

import json
import re
from typing import Any

from bridge.errors import InvalidModelError

DEEPEST = 20
"""Lists and objects within one another; Bridge's own records have four."""

_BRACKETS = r'(?s)[][{}]|"(?:[^"\\]|\\.)*"'


def read_record(text: str, what: str) -> Any:
    """The data of a record; InvalidModelError where it is none."""
    try:
        if _depth(text) > DEEPEST:
            raise ValueError("it is nested too deep")
        return json.loads(text)
    except ValueError as error:
        raise broken(what, error) from error


def broken(what: str, why: object) -> InvalidModelError:
    """The error for a record that is not as Bridge writes it."""
    return InvalidModelError(f"the model's record of its {what} cannot be read: {why}")


def _depth(text: str) -> int:
    """How deep the brackets of a text are nested."""
    depth = deepest = 0
    for found in re.finditer(_BRACKETS, text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        deepest = max(deepest, depth)
        if deepest > DEEPEST:
            break
    return deepest
