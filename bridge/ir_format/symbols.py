"""The names of dimensions, which IR has no place for: its rt_info keeps them for the way back."""

from __future__ import annotations

import json
from collections.abc import Iterable

from bridge.errors import InvalidModelError
from bridge.metadata import read_record
from bridge.neutral.graph import Value
from bridge.neutral.types import with_symbols

KEY = "symbols"
"""The entry of `Model.metadata` that holds them, in JSON: of an input or output, by its name, the
name of each dimension, null where it has none."""


def dump(values: Iterable[tuple[str, Value]]) -> dict[str, str]:
    """The entry for inputs and outputs, by name; none where no dimension has a name."""
    symbols = {
        name: [dim if isinstance(dim, str) else None for dim in value.shape]
        for name, value in values
        if value.shape is not None and any(isinstance(dim, str) for dim in value.shape)
    }
    return {KEY: json.dumps(symbols, ensure_ascii=False)} if symbols else {}


def load(metadata: dict[str, str]) -> dict[str, list[str | None]]:
    """Takes the entry out of the metadata; what is no such entry says nothing."""
    try:
        symbols = read_record(metadata.pop(KEY, "{}"), KEY)
    except InvalidModelError:
        return {}
    return {
        name: dims
        for name, dims in (symbols.items() if isinstance(symbols, dict) else ())
        if isinstance(dims, list) and all(dim is None or isinstance(dim, str) for dim in dims)
    }


def restore(value: Value, name: str, symbols: dict[str, list[str | None]]) -> None:
    """Gives the dimensions that are still open the names they had; somebody may have fixed or
    bounded some since."""
    if name in symbols:
        value.type = with_symbols(value.type, symbols[name])
