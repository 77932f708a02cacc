"""Inputs that open branches, but whose differences are no verdict: empty ones and extreme ones.

Engines round large numbers unlike, overflow at other places, and hold 64-bit integers in 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_LARGEST = {"f": 1e4, "i": 2.0**24, "u": 2.0**24}
"""The magnitude beyond which a number that the search chose is extreme, by the kind of its type."""


def why_aside(feed: Mapping[str, Any], given: frozenset[str] = frozenset()) -> str:
    """Why differences with an input count only if there are no others, "" if they always count.
    `given` are the names of inputs whose values a user chose."""
    if is_empty(feed):
        return "an input without elements"
    if any(_is_extreme(value) for name, value in feed.items() if name not in given):
        return "an extreme input"
    return ""


def is_empty(feed: Mapping[str, Any]) -> bool:
    """Whether an input has no elements."""
    return any(isinstance(value, np.ndarray) and not value.size for value in feed.values())


def _is_extreme(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_extreme, value))
    if not isinstance(value, np.ndarray) or not value.size:
        return False
    most = _LARGEST.get(value.dtype.kind)
    return most is not None and bool(np.any(np.abs(value.astype(np.float64)) > most))
