"""Activation functions that IR has in a more general form, or in parts: LeakyRelu and Clip."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import F32, F64, I8, I32, I64, U8
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X, SLOPE = var(), constant()


@fuses(op("PRelu", X, SLOPE))
def leaky_relu(b: Builder, match: Found, uses: Uses) -> Value | None:
    """PRelu with one slope for all, of the shape that LeakyRelu's has in IR."""
    known = known_of(match[SLOPE]).array
    if known is None or known.shape not in ((), (1,)):
        return None
    return b.op("LeakyRelu", match[X], alpha=float(known.reshape(())))


CLIPPED = var(F32, F64, I8, U8, I32, I64, where=lambda x: bool(x.rank))
"""The data of a Clip, in types of onnxruntime's; a scalar would be taken for a bound."""
LOWER, UPPER = var(rank=0), var(rank=0)
RAISED = op("Max", CLIPPED, LOWER, None)


@fuses(op("Min", RAISED, UPPER, None), RAISED, opset=12)
def clip(b: Builder, match: Found, uses: Uses) -> Value | None:
    """The lesser of an upper bound and the greater of a lower one, both scalars."""
    return b.op("Clip", match[CLIPPED], *(_nameless(b, match[v]) for v in (LOWER, UPPER)))


def _nameless(b: Builder, bound: Value) -> Value:
    """A bound; a constant one without its name, for IR's Clamp has none for it."""
    return bound if bound.constant is None else b.tensor(bound.constant)
