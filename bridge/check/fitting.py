"""Sizes that a model takes, where it takes none of the inputs that a user's sizes allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bridge.check.demands import SizeBounds, shared
from bridge.check.engines import Session
from bridge.check.explore import explore
from bridge.check.inputs import Recipe, free_dimensions
from bridge.neutral.graph import Model
from bridge.neutral.types import innermost

_BUDGET = 200  # runs of one search
_SINGLES = 6  # sizes that are left out one by one
_NAMED = 8  # open dimensions that are all named


def sizes_that_fit(
    model: Model,
    session: Session,
    base: Recipe,
    asked: Mapping[str, SizeBounds],
    symbols: dict[str, str],
) -> dict[str, int]:
    """Sizes with which a model takes an input, empty if a search finds no input. They are for the
    dimensions that `asked` fixes, and for the other open dimensions unless these are many. If
    possible, all asked sizes but one stay.

    `base` holds sizes that the user did not give, `symbols` is the result of `share_symbols`."""
    open = dict.fromkeys((*asked, *free_dimensions(model)))
    keys = open if len(open) <= _NAMED else asked
    for kept in _relaxed(asked):
        recipe = replace(base, sizes={**base.sizes, **shared(symbols, kept)})
        found = explore(model, session, [], recipe, 1, _BUDGET, lambda site: None)
        for feed in found.feeds:
            return {key: size for key in keys for size in _size(model, feed, key, symbols)}
    return {}


def _relaxed(asked: Mapping[str, SizeBounds]) -> Iterator[dict[str, SizeBounds]]:
    """The sizes without one of them, from the last to the first; then none."""
    if 1 < len(asked) <= _SINGLES:
        for left_out in reversed(list(asked)):
            yield {key: size for key, size in asked.items() if key != left_out}
    if asked:
        yield {}


def _size(model: Model, feed: Mapping[str, Any], key: str, symbols: dict[str, str]) -> list[int]:
    """The size of a dimension in an input, by its key in `Recipe.sizes`: one, or none."""
    for value in model.graph.inputs:
        array = feed.get(value.name)
        dims = innermost(value.type).shape
        for axis, size in enumerate(np.shape(array) if isinstance(array, np.ndarray) else ()):
            symbol = None if dims is None else dims[axis]
            if f"{value.name}.{axis}" == key or symbol in (key, symbols.get(key)):
                return [size]
    return []
