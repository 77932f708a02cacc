"""How often a check looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG = 200_000  # objects that are made before the first look at them


@contextmanager
def little_collection() -> Iterator[None]:
    """Makes garbage collection rare. Graphs are cycles that live long, and several are in memory.
    Python collects after a few hundred new objects, and that takes a third of the time of a large
    check. Without any collection, every changed and written graph would stay in memory."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
