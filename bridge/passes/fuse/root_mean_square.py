"""RMSNormalization: elements by the root of the mean of their squares, scaled."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import F16, F32, is_static
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses, trailing, unconverted

X, AXES, EPSILON, SCALE = var(), var(), constant(), var(F32, F16)
SQUARE = (X * X) | (X**2)
MEAN = op("ReduceMean", SQUARE, AXES, keepdims=True)
ROOT = op("Sqrt", MEAN + EPSILON)
INVERSE = op("Reciprocal", ROOT) | (1 / ROOT) | (ROOT**-1)
NORMALIZED = (X / ROOT) | (X * INVERSE)
NARROW = op("Cast", NORMALIZED, to=F16)


@fuses((NARROW | NORMALIZED) * SCALE, opset=23)
def rms_normalization(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Over the last axes, with a scale of their shape. Narrower types compute in f32."""
    x = _widened(match[X]) if NARROW in match else match[X]
    epsilon = known_of(match[EPSILON]).array
    if x is None or x.shape is None or x.element is not match[SCALE].element:
        return None
    rank = len(x.shape)
    axes = tuple(sorted(known_axes(match[AXES], rank) or ()))
    if not axes or axes != tuple(range(axes[0], rank)) or epsilon is None or epsilon.size != 1:
        return None
    shape = x.shape[axes[0] :]
    scale = trailing(b, match[SCALE], shape) if is_static(shape) else None
    if scale is None:
        return None
    b.name = match.node(SQUARE).name
    return b.op(
        "RMSNormalization", x, scale, axis=axes[0] - rank, epsilon=float(epsilon.reshape(())),
        stash_type=F32,
    )  # fmt: skip


def _widened(x: Value) -> Value | None:
    """The f16 value behind a conversion to f32."""
    inner = unconverted(x)
    return inner if x.element is F32 and inner.element is F16 else None
