"""Constants that IR stores in few bits, with scales in the graph, become DequantizeLinear in ONNX.
If they are scaled in f32 and meet floats, they stay as they are.

IR has `Convert` from integers, `Subtract` of a zero point and `Multiply` by a scale, often in f16.
A `Reshape` that joins blocks and a `Convert` to f32 may follow. OpenVINO computes all this in f32,
and DequantizeLinear does too; ONNX's f16 operators would round.
"""

from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.terms import Found, op, var
from bridge.neutral.types import F16, F32, I4, I8, U4, U8, is_static
from bridge.passes.fuse import fuses
from bridge.passes.fuse.float_weights import stays_arithmetic
from bridge.passes.uses import Uses, unconverted, zero_points


@dataclass(frozen=True)
class _Scaled:
    """Integers with scale and zero point, in f32. The scale has the integers' rank, the zero point
    the scale's shape (None: 0); `names` are the names of all three."""

    integers: Tensor
    scale: np.ndarray
    zero_point: np.ndarray | None
    names: list[list[str]]


INTEGERS = var(I8, U8, I4, U4, where=lambda value: value.constant is not None)
OFFSET, SCALE, WIDE = var(), var(), op("Cast", INTEGERS).shared()
SCALED = (((WIDE - OFFSET).shared() | WIDE) * SCALE).shared()
SHAPED = op("Reshape", SCALED).shared() | SCALED


COMPRESSED = op("Cast", SHAPED) | SHAPED


@fuses(COMPRESSED)
def compressed_constant(b: Builder, match: Found, uses: Uses) -> Value | None:
    """A constant of few bits, scaled, perhaps reshaped, and perhaps converted from f16."""
    y = match[COMPRESSED]
    if y.element is not F32 or not is_static(y.shape):
        return None
    if match.node(COMPRESSED).op == "Cast" and match[SHAPED].element is not F16:
        return None
    if match[SCALED].element is F32 and stays_arithmetic(b, y, uses):
        return None
    scaled = _scaled(match)
    return None if scaled is None else _dequantized(b, scaled, y.shape)


def _scaled(match: Found) -> _Scaled | None:
    data, factor, offset = match[INTEGERS], match[SCALE], match.get(OFFSET)
    integers, scale = data.constant, known_of(factor).reals
    if integers is None or scale is None or scale.ndim > len(integers.shape):
        return None
    scale = scale.reshape((1,) * (len(integers.shape) - scale.ndim) + scale.shape)
    zeros = zero_points(offset, integers.element, scale)
    if zeros is None:
        return None
    names = [list(value.names) for value in (data, unconverted(factor))]
    names.append([] if offset is None else list(unconverted(offset).names))
    return _Scaled(integers, scale, None if offset is None else zeros, names)


def _dequantized(b: Builder, found: _Scaled, wanted: tuple[int, ...]) -> Value | None:
    """DequantizeLinear of the integers in the shape `wanted`, else with Reshape behind it."""
    found = _joined_channels(found)
    shape, form = found.integers.shape, _form(found.integers.shape, found.scale.shape)
    if form is None:
        return None
    integers, place = wanted, found.scale.shape
    axis, blocks = form.get("axis", 0), "block_size" in form
    if not blocks:
        place = found.scale.shape[axis : axis + 1] if form else ()
        if form and wanted[: axis + 1] != shape[: axis + 1]:
            integers = shape
    elif axis > 0 and place[axis] == 1 and wanted == _joined(shape, axis):
        form["axis"] -= 1
        place = place[:axis] + place[axis + 1 :]
    else:
        integers = shape
    element = found.integers.element
    tensors = [
        Tensor(element, integers, found.integers.source),
        Tensor.of(found.scale.reshape(place)),
    ]
    zeros = found.zero_point
    if zeros is None and element in (I8, U8) and not blocks:
        # onnxruntime only has an integer Gemm for weights of 8 bits with zero points.
        zeros = np.zeros_like(found.scale)
    if zeros is not None:
        tensors.append(Tensor.of(zeros.reshape(place).astype(element.dtype)))
    inputs = [b.tensor(tensor, names) for tensor, names in zip(tensors, found.names, strict=False)]
    y = b.op("DequantizeLinear", *inputs, **form)
    return y if integers == wanted else b.op("Reshape", y, list(wanted))


def _joined_channels(found: _Scaled) -> _Scaled:
    """The filters of groups, [groups, outputs, ...], with their first two axes as one if each
    output has its own scale."""
    shape, scale = found.integers.shape, found.scale.shape
    if len(shape) < 3 or scale[:2] != shape[:2] or 1 in scale[:2] or set(scale[2:]) != {1}:
        return found
    count, zeros = scale[0] * scale[1], found.zero_point
    return _Scaled(
        Tensor(found.integers.element, (count, *shape[2:]), found.integers.source),
        found.scale.reshape(count, *scale[2:]),
        None if zeros is None else zeros.reshape(count, *scale[2:]),
        found.names,
    )


def _joined(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """A shape with an axis and the one before it as one."""
    return (*shape[: axis - 1], shape[axis - 1] * shape[axis], *shape[axis + 1 :])


def _form(shape: tuple[int, ...], scale: tuple[int, ...]) -> dict[str, int] | None:
    """The attributes of a DequantizeLinear with a scale of this shape and the data's rank; {} for
    one scale, None if no form fits."""
    wide = [axis for axis, size in enumerate(scale) if size > 1]
    if not wide:
        return {}
    if len(wide) == 1 and scale[wide[0]] == shape[wide[0]]:
        return {"axis": wide[0]}
    blocked = [axis for axis, size in enumerate(scale) if size != shape[axis]]
    if len(blocked) != 1 or shape[blocked[0]] % scale[blocked[0]]:
        return None
    return {"axis": blocked[0], "block_size": shape[blocked[0]] // scale[blocked[0]]}
