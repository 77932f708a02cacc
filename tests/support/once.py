"""Objects that take seconds to make are made once in a run of the tests, for all its processes."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

FOLDER = "BRIDGE_TESTS_FOLDER"
"""The environment variable that names the folder of this run; `tests/conftest.py` sets it."""

Made = TypeVar("Made")


def once_a_run(make: Callable[[], Made]) -> Callable[[], Made]:
    """The function, called by one process alone; the other processes read its result. Outside of a
    run of tests it is called once in each process."""

    @functools.cache
    def made() -> Made:
        folder = os.environ.get(FOLDER)
        if folder is None:
            return make()
        path = Path(folder, f"{make.__module__}.{make.__name__}")
        if path.exists():
            found: Made = pickle.loads(path.read_bytes())
            return found
        result = make()
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_bytes(pickle.dumps(result))
        part.replace(path)  # Two processes may make it at once; each writes a whole file.
        return result

    return made
