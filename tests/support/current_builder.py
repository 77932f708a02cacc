"""Checks in tests that a function with a builder is called while that builder is the current one.
Otherwise arithmetic would put its nodes into another graph."""

import sys
from pathlib import Path

from bridge.neutral import arithmetic
from bridge.neutral.builder import Builder

_HERE = str(Path(arithmetic.__file__))
_builder = arithmetic._builder


def _held() -> Builder:
    current = _builder()
    frame = sys._getframe(1)
    # A comprehension has a frame of its own.
    while frame.f_code.co_filename == _HERE or frame.f_code.co_name.startswith("<"):
        frame = frame.f_back
    known = [local for local in frame.f_locals.values() if isinstance(local, Builder)]
    if known and all(builder is not current for builder in known):
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        raise RuntimeError(f"{where}: not the current builder; write `with b:` around it")
    return current


def hold() -> None:
    """From now on arithmetic on values makes this check."""
    arithmetic._builder = _held
