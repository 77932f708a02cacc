"""MatMulInteger, ConvInteger, DynamicQuantizeLinear, for which onnxruntime has kernels of 8 bits:
what quantisers of weights write, in parts."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, I8, I32, U8, Element
from bridge.passes.fuse.uses import Uses, either_way, is_number, numbers, zero_points


def matmul_integer(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The product of integers of 8 bits in 32, each less a zero point."""
    if node.attributes.get("transpose_a") or node.attributes.get("transpose_b"):
        return None
    left, right = (_operand(b, value, I32, uses) for value in node.inputs)
    if left is None or right is None or _vectors(left):
        return None  # a vector has one zero point for each row, and stands upright
    return b.op("MatMulInteger", left[0], right[0], *_zeros(left, right))


def conv_integer(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The convolution of integers of 8 bits in f32, each less a zero point, as i32."""
    conv = uses.single_use(node.inputs[0], "Conv")
    if node.attributes["to"] is not I32 or conv is None or len(conv.inputs) != 2:
        return None
    data, filters = (_operand(b, value, F32, uses) for value in conv.inputs)
    if data is None or filters is None or _vectors(data, filters):
        return None
    return b.op("ConvInteger", data[0], filters[0], *_zeros(data, filters), **conv.attributes)


Operand = tuple[Value, Value | None]
"""Integers of 8 bits and their zero point."""


def _zeros(left: Operand, right: Operand) -> list[Value | None]:
    zeros = [left[1], right[1]]
    while zeros and zeros[-1] is None:
        zeros.pop()
    return zeros


def _vectors(*operands: Operand) -> list[Value]:
    """Zero points that are not one number."""
    return [zero for _, zero in operands if zero is not None and zero.rank != 0]


def _operand(b: Builder, value: Value | None, wide: Element, uses: Uses) -> Operand | None:
    """What is converted to a wider type, and what is taken from it there; None for anything
    else."""
    less = uses.single_use(value, "Sub")
    q = _widened(less.inputs[0] if less is not None else value, wide)
    if q is None or q.element is None:
        return None
    if less is None:
        return q, None
    zero = less.inputs[1]
    assert zero is not None
    known = numbers(zero)
    if known is None:
        same = _widened(zero, wide)
        return (q, same) if same is not None and same.rank == 0 else None
    if zero_points(zero, q.element, known) is None:
        return None
    if known.size == 1 and known.ndim <= (q.rank or 0):
        return q, b.constant(known.reshape(()), q.element)
    columns = known.ndim == 1 and q.rank == 2 and q.shape is not None and q.shape[1] == known.size
    return (q, b.constant(known, q.element)) if columns else None


def _widened(value: Value | None, wide: Element) -> Value | None:
    """The integers of 8 bits that a value has in a wider type."""
    cast = value.producer if value is not None else None
    if cast is None or cast.op != "Cast" or cast.attributes["to"] is not wide:
        return None
    q = cast.inputs[0]
    return q if q is not None and q.element in (I8, U8) else None


def dynamic_quantize_linear(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x / scale, rounded, and the zero point, in u8, where scale and zero point are those of the
    least and the largest x (DynamicQuantizeLinear-11)."""
    if node.attributes["to"] is not U8:
        return None
    total = uses.single_use(_between_bytes(node.inputs[0], uses), "Add")
    for part, offset in either_way(total) if total is not None else ():
        rounded, cast = uses.single_use(part, "Round"), uses.single_use(offset, "Cast")
        quotient = uses.single_use(rounded.inputs[0], "Div") if rounded is not None else None
        if quotient is None or cast is None:
            continue
        x, scale = quotient.inputs
        zero_point = cast.inputs[0]
        assert x is not None and scale is not None and zero_point is not None
        if x.element is F32 and _is_scale(scale, x) and _is_zero_point(zero_point, scale, uses):
            q, own_scale, own_zero_point = b.ops("DynamicQuantizeLinear", 3, x)
            uses.hand_over(scale, own_scale, inside=2)
            uses.hand_over(zero_point, own_zero_point, inside=1)
            return q
    return None


def _between_bytes(value: Value | None, uses: Uses) -> Value | None:
    """What a value is when it is kept between 0 and 255."""
    clip = uses.single_use(value, "Clip")
    if clip is None or not (is_number(clip.input(1), 0) and is_number(clip.input(2), 255)):
        return None
    return clip.inputs[0]


def _is_scale(value: Value, x: Value) -> bool:
    """Whether a value is (max(x, 0) - min(x, 0)) / 255."""
    spread = _quotient_by(value, 255)
    if spread is None or spread.producer is None or spread.producer.op != "Sub":
        return False
    high, low = spread.producer.inputs
    return _is_extreme(high, x, "Max") and _is_extreme(low, x, "Min")


def _quotient_by(value: Value, number: float) -> Value | None:
    node = value.producer
    if node is None or node.op != "Div" or not is_number(node.inputs[1], number):
        return None
    return node.inputs[0]


def _is_extreme(value: Value | None, x: Value, op: str) -> bool:
    """Whether a value is the largest, or the least, of x and 0."""
    node = value.producer if value is not None else None
    if node is None or node.op != op or len(node.inputs) != 2:
        return False
    return any(is_number(zero, 0) and _is_reduced(of, x, op) for of, zero in either_way(node))


def _is_reduced(value: Value, x: Value, op: str) -> bool:
    node = value.producer
    if node is None or node.op != f"Reduce{op}" or node.inputs[0] is not x or value.rank != 0:
        return False
    return not node.attributes["keepdims"]


def _is_zero_point(value: Value, scale: Value, uses: Uses) -> bool:
    """Whether a value is 0 - least / scale, limited to u8 and rounded."""
    cast = value.producer
    if cast is None or cast.op != "Cast" or cast.attributes["to"] is not U8:
        return False
    rounded = uses.single_use(cast.inputs[0], "Round")
    limited = _between_bytes(rounded.inputs[0], uses) if rounded is not None else None
    less = uses.single_use(limited, "Sub")
    quotient = uses.single_use(less.inputs[1], "Div") if less is not None else None
    if less is None or quotient is None or not is_number(less.inputs[0], 0):
        return False
    spread = _quotient_by(scale, 255)
    assert spread is not None and spread.producer is not None
    return quotient.inputs[1] is scale and quotient.inputs[0] is spread.producer.inputs[1]
