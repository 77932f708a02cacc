"""QuantizeLinear, DequantizeLinear and the QLinear operators.

IR lacks them. They become division, rounding and clipping; a pass writes FakeQuantize for some
(`bridge/passes/fake_quantize.py`).
"""

import numpy as np

from bridge.neutral.inference import constraints as must
from bridge.neutral.inference.known import known_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import (
    BF16,
    F16,
    F32,
    I8,
    I32,
    U8,
    Element,
    Shape,
    differ,
    is_static,
    low,
    size_of,
)
from bridge.operators import Builder, Node, Refused, Result, Value, legalizes, ranks, required
from bridge.operators.guarding import guards
from bridge.operators.nn.shapes import window
from bridge.operators.nn.windows import fitting_window


class Blocks:
    """The arrangement of scales and zero points along the data. There is one for all elements, one
    for each index of `axis`, or one for each block of `block_size` indices."""

    def __init__(self, b: Builder, node: Node, data: Value, scale: Value) -> None:
        self.b = b
        self.node = node
        self.data = data
        self.block = node.attributes.get("block_size", 0)
        single = scale.rank == 0 or scale.shape == (1,)
        if single and not (self.block and scale.rank == data.rank != 0):
            self.block = 0
            self.axis: int | None = None
            return
        self.rank = ranks(node, 0)[0]
        self.axis = node.attributes.get("axis", 1) % self.rank
        dim = data.dims[self.axis]
        self.split = bool(self.block) and isinstance(dim, int) and dim % self.block == 0

    def open(self, data: Value) -> Value:
        """The data in a shape for broadcasting with `aligned` values."""
        if self.axis is None or not self.block or not self.split:
            return data
        count = low(data.dims[self.axis]) // self.block
        before = [self.b.dim(data, i) for i in range(self.axis)]
        after = [self.b.dim(data, i) for i in range(self.axis + 1, self.rank)]
        return self.b.reshape(data, *before, count, self.block, *after)

    def close(self, result: Value) -> Value:
        """The result in the shape of the data."""
        if self.axis is None or not self.block or not self.split:
            return result
        return self.b.reshape(result, *(self.b.dim(self.data, i) for i in range(self.rank)))

    def aligned(self, value: Value) -> Value:
        """A scale or zero point in a shape that broadcasts with the opened data."""
        b = self.b
        if self.axis is None:
            return b.scalar(value)
        if not self.block:
            return b.reshape(value, -1, *(1,) * (self.rank - self.axis - 1))
        dims = [self.b.dim(value, i) for i in range(self.rank)]
        inner = b.reshape(value, *dims[: self.axis + 1], 1, *dims[self.axis + 1 :])
        if self.split:
            return inner
        if value.dims[self.axis] == 1:
            return value
        # The arithmetic is in f32. Engines need not expand and slice elements of fewer bits.
        inner = b.cast(inner, F32)
        target = [1] * (self.rank + 1)
        target[self.axis + 1] = self.block
        wide = b.op("Expand", inner, target)
        dims[self.axis] = -1
        joined = b.op("Reshape", wide, b.shape(*dims))
        return b.cut(joined, self.axis, 0, b.sizes(self.data, self.axis))


def _needs_newer(b: Builder, node: Node, narrow: Element | None) -> bool:
    """Whether the target operator set lacks a (de)quantisation from or to `narrow` in this form."""
    opset, attributes = b.opset, node.attributes
    if opset >= 23 or narrow is None:
        return False
    since = 13 if narrow in (I8, U8, I32) else 19 if narrow.is_float and narrow.bits == 8 else 21
    if attributes.get("block_size"):
        since = 21
    if attributes.get("output_dtype") and node.input(2) is None:
        since = max(since, 21 if node.op == "QuantizeLinear" else 23)
    scale, data = required(node, 1, 0)
    if scale.element is not F32 or data.element in (F16, BF16):
        since = max(since, 19)
    return opset < since


@legalizes("DynamicQuantizeLinear", target="ir")
def dynamic_quantize_linear(b: Builder, node: Node) -> Result:
    """DynamicQuantizeLinear-11: the scale of zeros alone is 1, as in onnxruntime. The standard's
    function divides by 0, and so do models that scale a bias by it."""
    (x,) = required(node, 0)
    least = b.min(b.op("ReduceMin", x, keepdims=False), 0.0)
    span = b.max(b.op("ReduceMax", x, keepdims=False), 0.0) - least
    scale = b.where(span.equal(0.0), 255.0, span) / 255.0
    zero_point = b.cast(b.op("Round", b.op("Clip", 0.0 - least / scale, 0.0, 255.0)), U8)
    return [b.op("QuantizeLinear", x, scale, zero_point), scale, zero_point]


@legalizes("QuantizeLinear", target="ir")
@legalizes("QuantizeLinear", target="onnx")
def quantize_linear(b: Builder, node: Node) -> Result:
    """QuantizeLinear (10 to 25) as division, rounding, shift and clipping. IR lacks the operator,
    and older operator sets lack it for some types and for blocks."""
    data, scale = required(node, 0, 1)
    zero_point = node.input(2)
    element = U8 if zero_point is None else zero_point.element
    element = node.attributes.get("output_dtype") or element
    if b.opset and not _needs_newer(b, node, element):
        return None
    blocks = Blocks(b, node, data, scale)
    x, divisor = blocks.open(b.cast(data, F32)), blocks.aligned(scale)
    offset = None if zero_point is None else blocks.aligned(zero_point)
    if element is None or element.kind not in ("int", "uint", "float"):
        raise Refused(f"there is no quantisation to {element}")
    if element.is_float:
        y = x / b.cast(divisor, F32)
        y = b.op("Cast", y, to=element, saturate=node.attributes["saturate"])
        return blocks.close(y)
    low, high = element.bounds
    y = b.op("Round", x / b.cast(divisor, F32))
    y = b.plus(y, None if offset is None else b.cast(offset, F32))
    y = b.op("Clip", y, float(low), float(high))
    made = b.node("Cast", [y], 1, {"to": element}, extras={"quantizes": True})
    return blocks.close(made.outputs[0])


@legalizes("DequantizeLinear", target="ir")
@legalizes("DequantizeLinear", target="onnx")
def dequantize_linear(b: Builder, node: Node) -> Result:
    """DequantizeLinear (10 to 25) as shift and scale. IR lacks the operator, and older operator
    sets lack it for some types and for blocks."""
    if b.opset and not _needs_newer(b, node, required(node, 0)[0].element):
        return None
    return scaled(b, node)


def scaled(b: Builder, node: Node) -> Value:
    """The output of a DequantizeLinear as Cast, Sub and Mul, with Reshape for blocks."""
    data, scale = required(node, 0, 1)
    zero_point = node.input(2)
    # Beside one scale, QLinearMatMul may have many zero points.
    blocks = Blocks(b, node, data, zero_point if zero_point and scale.rank == 0 else scale)
    y = b.cast(blocks.open(data), F32)
    offsets = known_of(zero_point).array
    if zero_point is not None and (offsets is None or offsets.astype(np.float32).any()):
        if offsets is not None and offsets.size > 1 and (offsets == offsets.flat[0]).all():
            aligned = b.tensor(Tensor.of(offsets.reshape(-1)[:1].reshape(())), zero_point.names[:])
        else:
            aligned = blocks.aligned(zero_point)
        y -= b.cast(aligned, F32)
    y = blocks.close(y * b.cast(blocks.aligned(scale), F32))
    return b.cast(y, node.attributes.get("output_dtype") or scale.element)


@legalizes("QLinearConv", target="ir")
def qlinear_conv_to_ir(b: Builder, node: Node) -> Result:
    """QLinearConv-10, which IR lacks: a Conv between DequantizeLinear and QuantizeLinear."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = required(node, 0, 1, 2, 3, 4, 5, 6, 7)
    data = b.op("DequantizeLinear", x, x_scale, x_zero)
    filters = b.op("DequantizeLinear", w, w_scale, w_zero, axis=0)
    bias = node.input(8)
    if bias is not None:
        bias = b.cast(bias, F32) * (b.scalar(x_scale) * w_scale)
    y = b.op("Conv", data, filters, bias, **node.attributes)
    return b.op("QuantizeLinear", y, y_scale, y_zero)


@legalizes("QLinearMatMul", target="ir")
def qlinear_matmul_to_ir(b: Builder, node: Node) -> Result:
    """QLinearMatMul (10 to 21). Scales are along the rows of `a` and of the result, and along the
    columns of `b`."""
    x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero = required(node, *range(8))
    left = b.op("DequantizeLinear", x, x_scale, x_zero, axis=-2)
    right = b.op("DequantizeLinear", y, y_scale, y_zero, axis=-1)
    return b.op("QuantizeLinear", b.op("MatMul", left, right), z_scale, z_zero, axis=-2)


@legalizes("ConvInteger", target="ir")
def conv_integer_to_ir(b: Builder, node: Node) -> Result:
    """ConvInteger-10 in f32, which is exact for sums up to 2^24."""
    x, w = required(node, 0, 1)
    x_zero, w_zero = node.input(2), node.input(3)
    data, filters = b.cast(x, F32), b.cast(w, F32)
    if x_zero is not None:
        data -= b.cast(b.scalar(x_zero), F32)
    if w_zero is not None:
        rank = ranks(node, 1)[0]
        filters -= b.cast(b.reshape(w_zero, -1, *(1,) * (rank - 1)), F32)
    return b.op("Cast", b.op("Conv", data, filters, **node.attributes), to=I32)


def axes_of_blocks(x: Shape, scale: Shape, block: int) -> list[int]:
    """The axes of data along which there is one scale for each block."""
    if not is_static(x) or not is_static(scale) or len(x) != len(scale):
        return []
    apart = [axis for axis, (a, b) in enumerate(zip(x, scale, strict=True)) if a != b]
    fits = [-(-dim // block) == count for dim, count in zip(x, scale, strict=True)]
    return [axis for axis, fit in enumerate(fits) if fit and set(apart) <= {axis}]


def _blocks(x: must.Operand, scale: must.Operand, axis: int, block: int) -> must.Constraints:
    if not block or not scale.shape:
        return
    if scale.rank != x.rank:
        yield f"{scale} are no scales of blocks of {x}"
    elif is_static(x.shape) and is_static(scale.shape):
        fits = axes_of_blocks(x.shape, scale.shape, block)
        if axis % len(x.shape) not in fits:
            others = f"; they fit along axis {fits[0]}" if fits else ""
            yield f"{scale} are no scales of blocks of {block} along axis {axis} of {x}{others}"


def scales(node: Node) -> must.Constraints:
    """QuantizeLinear and DequantizeLinear: a scale is one number, one for each place along an axis,
    or one for each block. Zero points are like the scales."""
    x, scale, zero = must.operands(node, 3)
    if x.shape is None or scale.shape is None:
        return
    axis, block = node.attributes["axis"], node.attributes.get("block_size", 0)
    if zero.shape and zero.shape != (1,):
        why = "{} are no zero points for scales {}"
        yield must.Ranks(zero, scale, 0, why, zero, scale)
        for one, other in zip(zero.shape, scale.shape, strict=False):
            yield must.Same(one, other, why, zero, scale)
    yield from _blocks(x, scale, axis, block)
    if block or not is_static(scale.shape) or size_of(scale.shape) == 1:
        return
    if scale.rank == 1:
        if not -len(x.shape) <= axis < len(x.shape):
            yield f"{x} has no axis {axis}"
        yield must.Same(x[axis], scale[0], f"axis {axis} of {{}} has other scales, {{}}", x, scale)
        return
    pairs = zip(reversed(x.shape), reversed(scale.shape), strict=False)
    if len(scale.shape) > len(x.shape) or any(differ(a, b) and b != 1 for a, b in pairs):
        yield f"{must.Shapes(node.inputs)} cannot be broadcast together"


must.hold(("QuantizeLinear", "DequantizeLinear"), scales)
must.hold(("ConvInteger", "QLinearConv"), window)


guards("ConvInteger")(fitting_window)
