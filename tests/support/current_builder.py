"""Holds functions that get a builder to be called while that is the current one: arithmetic would
put its nodes into another graph otherwise."""

import sys
from pathlib import Path

from bridge.neutral import arithmetic
from bridge.neutral.builder import Builder

_HERE = str(Path(arithmetic.__file__))
_builder = arithmetic._builder


def _held() -> Builder:
    current = _builder()
    frame = sys._getframe(1)
    # A comprehension stands in a frame of its own.
    while frame.f_code.co_filename == _HERE or frame.f_code.co_name.startswith("<"):
        frame = frame.f_back
    known = [local for local in frame.f_locals.values() if isinstance(local, Builder)]
    if known and all(builder is not current for builder in known):
        where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        raise RuntimeError(f"{where}: not the current builder; write `with b:` around it")
    return current


def hold() -> None:
    """Has arithmetic on values check this from now on."""
    arithmetic._builder = _held
