"""The names of dimensions, which IR has no place for: its rt_info keeps them for the way back."""

from collections.abc import Iterable

from bridge.neutral.graph import Value
from bridge.neutral.types import with_symbols
from bridge.records.entry import Entry

Symbols = dict[str, list[str | None]]

SYMBOLS: Entry[Symbols] = Entry(
    "symbols", Symbols, "symbols", hint=True, style={"ensure_ascii": False}
)
"""The entry for the names of dimensions, by the name of the input or output. None stands for a
dimension without a name."""


def symbols_of(values: Iterable[tuple[str, Value]]) -> Symbols:
    """The names of the dimensions of inputs and outputs that have any."""
    return {
        name: [dim if isinstance(dim, str) else None for dim in value.shape]
        for name, value in values
        if value.shape is not None and any(isinstance(dim, str) for dim in value.shape)
    }


def restore(value: Value, name: str, symbols: Symbols) -> None:
    """Gives open dimensions their former names. Others may have been fixed or bounded since."""
    if name in symbols:
        value.type = with_symbols(value.type, symbols[name])
