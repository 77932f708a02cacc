"""LayerNormalization and InstanceNormalization, which are MVN, scaled and shifted; and
RMSNormalization."""

from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import BF16, F16, F32, Element, is_static
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses, along_channels, trailing, unconverted

AXES, SCALE, BIAS = var(), var(), var()
MVN = op("MVN", var(), AXES, normalize_variance=True)
CONVERTED = op("Cast", MVN)
SCALED = (CONVERTED | MVN) * SCALE
NORMALIZED = MVN | SCALED | (SCALED + BIAS)


@dataclass(frozen=True)
class _Normalized:
    """The normalized value, its axes, the scale and the shift."""

    x: Value
    axes: tuple[int, ...]
    scale: Value | None
    bias: Value | None
    epsilon: float
    name: str


@fuses(NORMALIZED, opset=17)
def layer_normalization(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Over the last axes, with a scale, and perhaps a bias, of their shape. MVN computes f16 values
    in f32, as LayerNormalization does by its stash_type."""
    normalized = _normalized(match)
    if normalized is None:
        return None
    x = normalized.x
    rank, shape = len(x.dims), x.dims[normalized.axes[0] :]
    if normalized.axes != tuple(range(normalized.axes[0], rank)) or not is_static(shape):
        return None
    if normalized.scale is None and normalized.axes[0] == 2 and rank > 3:
        return None  # An image's.
    given = [value for value in (normalized.scale, normalized.bias) if value is not None]
    parameters = [trailing(b, value, shape) for value in given]
    if None in parameters:
        return None
    if not parameters:
        parameters.append(b.filled(1, shape, x.element))
    b.name = normalized.name
    return b.op(
        "LayerNormalization", x, *parameters, axis=normalized.axes[0] - rank,
        epsilon=normalized.epsilon, stash_type=F32,
    )  # fmt: skip


@fuses(NORMALIZED)
def instance_normalization(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Over all axes behind the channels, with a scale and a bias for each channel."""
    normalized = _normalized(match)
    if normalized is None or normalized.x.element is not match[MVN].element:
        return None
    x, rank = normalized.x, len(normalized.x.dims)
    if x.element not in (F32, F16) or rank < 3 or normalized.axes != tuple(range(2, rank)):
        return None
    channels = x.dims[1]
    if not isinstance(channels, int):
        return None
    if normalized.scale is None and rank < 4:
        return None
    parameters = [
        b.constant(np.full(channels, otherwise), x.element)
        if value is None
        else along_channels(b, value, channels, rank)
        for value, otherwise in ((normalized.scale, 1), (normalized.bias, 0))
    ]
    if None in parameters:
        return None
    b.name = normalized.name
    return b.op("InstanceNormalization", x, *parameters, epsilon=normalized.epsilon)


def _normalized(match: Found) -> _Normalized | None:
    """MVN of a float in its own type, or in f32 and perhaps converted back."""
    mvn, scale = match.node(MVN), match.get(SCALE)
    back = match.node(CONVERTED).attributes["to"] if CONVERTED in match else None
    if back is not None and _source(mvn, back) is mvn.inputs[0]:
        return None
    element = match[MVN].element if scale is None else scale.element
    x, attributes = _source(mvn, element), mvn.attributes
    if x is None or x.shape is None or element not in (F32, F16, BF16):
        return None
    axes = known_axes(match[AXES], len(x.shape))
    if not axes or attributes["eps_mode"] != "INSIDE_SQRT":
        return None
    bias, epsilon = match.get(BIAS), attributes["eps"]
    return _Normalized(x, tuple(sorted(axes)), scale, bias, epsilon, mvn.name)


def _source(mvn: Node, element: Element | None) -> Value | None:
    """The input of an MVN before it was converted from `element` to f32."""
    value = mvn.inputs[0]
    if value is None or value.element is not F32:
        return value
    inner = unconverted(value)
    return inner if inner.element is element and element in (F16, BF16) else value


X, EPSILON, FACTOR = var(), constant(), var(F32, F16)
SQUARE = (X * X) | (X**2)
MEAN = op("ReduceMean", SQUARE, AXES, keepdims=True)
ROOT = op("Sqrt", MEAN + EPSILON)
INVERSE = op("Reciprocal", ROOT) | (1 / ROOT) | (ROOT**-1)
BY_ROOT = (X / ROOT) | (X * INVERSE)
NARROW = op("Cast", BY_ROOT, to=F16)


@fuses((NARROW | BY_ROOT) * FACTOR, opset=23)
def rms_normalization(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Elements by the root of the mean of their squares, over the last axes, with a scale of their
    shape. Narrower types compute in f32."""
    x = _widened(match[X]) if NARROW in match else match[X]
    epsilon = known_of(match[EPSILON]).array
    if x is None or x.shape is None or x.element is not match[FACTOR].element:
        return None
    rank = len(x.shape)
    axes = tuple(sorted(known_axes(match[AXES], rank) or ()))
    if not axes or axes != tuple(range(axes[0], rank)) or epsilon is None or epsilon.size != 1:
        return None
    shape = x.shape[axes[0] :]
    scale = trailing(b, match[FACTOR], shape) if is_static(shape) else None
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
