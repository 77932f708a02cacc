"""Constants that IR stores in few bits, and scales in the graph, become DequantizeLinear in ONNX.

IR has `Convert` from integers, `Subtract` of a zero point, `Multiply` by a scale, often in f16 with
a `Reshape` that joins blocks and a `Convert` to f32 behind. OpenVINO computes that in f32, and so
does DequantizeLinear; ONNX's f16 operators would round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import F16, F32, I4, I8, U4, U8, is_static
from bridge.passes.fuse.uses import Uses, either_way, numbers, zero_points

_NARROW = (I8, U8, I4, U4)


@dataclass(frozen=True)
class _Scaled:
    """Integers, their scale, of their rank, and their zero point, of the scale's shape (None: 0),
    in f32; `names` are those of all three."""

    integers: Tensor
    scale: np.ndarray
    zero_point: np.ndarray | None
    names: tuple[list[str], list[str], list[str]]


def compressed_constant(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A constant of few bits, scaled, perhaps reshaped, and perhaps converted from f16."""
    value: Value | None = node.outputs[0]
    assert value is not None
    shape = value.shape
    if value.element is not F32 or not is_static(shape):
        return None
    if node.op == "Cast":
        value = node.inputs[0]
        if value is None or value.element is not F16:
            return None
    if value.producer is not None and value.producer.op == "Reshape":
        value = value.producer.inputs[0]
    found = _scaled(value)
    return None if found is None else _dequantized(b, found, shape)


def _scaled(value: Value | None) -> _Scaled | None:
    product = value.producer if value is not None else None
    if product is None or product.op != "Mul":
        return None
    for inner, factor in either_way(product):
        cast, offset = inner.producer, None
        if cast is not None and cast.op == "Sub":
            shifted, offset = cast.inputs
            cast = shifted.producer if shifted is not None else None
        data = cast.inputs[0] if cast is not None and cast.op == "Cast" else None
        integers, scale = data.constant if data is not None else None, numbers(factor)
        if data is None or integers is None or scale is None or integers.element not in _NARROW:
            continue
        rank = len(integers.shape)
        if scale.ndim > rank:
            continue
        scale = scale.reshape((1,) * (rank - scale.ndim) + scale.shape)
        zeros = zero_points(offset, integers.element, scale)
        if zeros is not None:
            names = (list(data.names), _names(factor), [] if offset is None else _names(offset))
            return _Scaled(integers, scale, None if offset is None else zeros, names)
    return None


def _names(value: Value) -> list[str]:
    """The names of a constant, or of one that is converted."""
    maker = value.producer
    source = maker.inputs[0] if maker is not None and maker.op == "Cast" else value
    return [] if source is None else list(source.names)


def _dequantized(b: Builder, found: _Scaled, wanted: tuple[int, ...]) -> Value | None:
    """DequantizeLinear of the integers in the shape `wanted`, else with Reshape behind it."""
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
        # onnxruntime has an integer Gemm for weights of 8 bits with zero points alone.
        zeros = np.zeros_like(found.scale)
    if zeros is not None:
        tensors.append(Tensor.of(zeros.reshape(place).astype(element.dtype)))
    inputs = [b.tensor(tensor, names) for tensor, names in zip(tensors, found.names, strict=False)]
    y = b.op("DequantizeLinear", *inputs, **form)
    return y if integers == wanted else b.op("Reshape", y, b.constant(list(wanted)))


def _joined(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """A shape with an axis and the one before it as one."""
    return (*shape[: axis - 1], shape[axis - 1] * shape[axis], *shape[axis + 1 :])


def _form(shape: tuple[int, ...], scale: tuple[int, ...]) -> dict[str, int] | None:
    """The attributes of a DequantizeLinear with a scale of this shape, of the data's rank; {} for
    one scale, None where there is no such form."""
    wide = [axis for axis, size in enumerate(scale) if size > 1]
    if not wide:
        return {}
    if len(wide) == 1 and scale[wide[0]] == shape[wide[0]]:
        return {"axis": wide[0]}
    blocked = [axis for axis, size in enumerate(scale) if size != shape[axis]]
    if len(blocked) != 1 or shape[blocked[0]] % scale[blocked[0]]:
        return None
    return {"axis": blocked[0], "block_size": shape[blocked[0]] // scale[blocked[0]]}
