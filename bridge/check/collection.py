"""How often a check looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_YOUNG = 200_000  # objects that are made before the first look at them


@contextmanager
def little_collection() -> Iterator[None]:
    """Graphs are cycles that live long, and several of them are in memory: to look among the few
    hundred objects made last, as Python does, takes a third of the time of a large check. Not to
    look at all would keep every graph that was changed and written."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
