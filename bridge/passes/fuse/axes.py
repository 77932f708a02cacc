"""Axes that a node leaves to the shape of its input."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import is_static
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X = var(where=lambda x: is_static(x.shape))


@fuses(op("Squeeze", X, None))
def axes_of_one(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Squeeze without axes, of a known shape, with them, as on the way to IR."""
    axes = [axis for axis, size in enumerate(match[X].dims) if size == 1]
    return b.op("Squeeze", match[X], axes) if axes else None
