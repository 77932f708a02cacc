"""Options that several commands share, and how their values are written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from bridge.errors import UsageError

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

_SHAPE = re.compile(r"(?P<name>.+)=\[(?P<dims>[^][]*)\]", re.DOTALL)
_INTERVAL = re.compile(r"(\d+)\.\.(\d*)")
_SYMBOL = re.compile(r"[^\W\d]\w*")


def input_shapes(texts: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Shapes by input name, from texts like `x=[1,3,?,h,2..8]`: sizes, `?` for any size, symbols,
    and ranges. Raises UsageError for other texts."""
    shapes: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise UsageError(
                f"--input-shape {text}: is not NAME=[DIM,...]; write for example 'x=[1,3,?,h]', "
                "quoted, and 'x=[]' for a scalar"
            )
        if match["name"] in shapes:
            raise UsageError(f'--input-shape {text}: "{match["name"]}" is given twice')
        dims = match["dims"].split(",") if match["dims"].strip() else []
        shapes[match["name"]] = tuple(_dim(dim.strip(), text) for dim in dims)
    return shapes


def _dim(dim: str, text: str) -> Any:
    if dim.isdecimal():
        return int(dim)
    if dim == "?":
        return None
    if _SYMBOL.fullmatch(dim):
        return dim
    limits = _INTERVAL.fullmatch(dim)
    if limits is not None:
        from bridge.neutral.types import interval

        low, high = int(limits[1]), int(limits[2]) if limits[2] else None
        if high is None or low <= high:
            return interval(low, high)
    raise UsageError(
        f'--input-shape {text}: "{dim}" is no dimension; it may be a size (3), ? for any size, '
        "a range (1..8, 1..) or a symbol (h)"
    )
