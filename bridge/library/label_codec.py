"""Strings and their places in a vocabulary, maps and their rows.

`bridge/records/boundary.py` says how they are recorded.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.errors import UsageError, amount
from bridge.records.boundary import Label


def places_of(name: str, strings: Any, words: Sequence[Label]) -> np.ndarray:
    """The place in the vocabulary, i64, of each string of the input `name`. Other strings get the
    number of words. UsageError for values that are no strings."""
    array = np.asarray(strings, dtype=object)
    known: dict[Any, int] = {word: place for place, word in enumerate(words)}
    found = []
    for item in array.reshape(-1).tolist():
        text = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item
        if not isinstance(text, str):
            raise UsageError(f'the input "{name}" takes strings, not {item!r}')
        found.append(known.get(text, len(words)))
    return np.array(found, np.int64).reshape(array.shape)


def words_at(name: str, places: Any, words: Sequence[Label]) -> np.ndarray:
    """The strings, as objects, that stand at some places of the vocabulary. UsageError for places
    that it does not have."""
    array = np.asarray(places)
    if array.dtype.kind not in "iu":
        raise UsageError(f'the output "{name}" is {array.dtype}; places in a vocabulary are i64')
    if array.size and not 0 <= array.min() <= array.max() < len(words):
        raise UsageError(
            f'the output "{name}" has {array.min()} to {array.max()}, which are no places in its '
            f"vocabulary of {amount(len(words), 'string')}"
        )
    vocabulary = np.empty(len(words), object)
    vocabulary[:] = words
    return np.asarray(vocabulary[array], dtype=object).reshape(array.shape)


def maps_of(name: str, rows: Any, keys: Sequence[Label]) -> list[dict[Label, Any]]:
    """A dict for each row [rows, keys]; a vector is one row. UsageError for rows of another
    length."""
    array = np.asarray(rows)
    if array.ndim not in (1, 2) or array.shape[-1] != len(keys):
        raise UsageError(
            f'the output "{name}" has the shape {list(array.shape)}; rows of maps with {len(keys)} '
            "keys have another"
        )
    return [dict(zip(keys, row, strict=True)) for row in array.reshape(-1, len(keys)).tolist()]
