"""MatMulInteger and DynamicQuantizeLinear, for which onnxruntime has kernels of 8 bits: what
quantisers of weights write, in parts."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import F32, I8, I32, U8
from bridge.operators.quantization.quantize import bounds
from bridge.passes.recompose.uses import Uses, either_way, is_number


def matmul_integer(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The product of integers of 8 bits in 32, each less a zero point."""
    if node.attributes.get("transpose_a") or node.attributes.get("transpose_b"):
        return None
    left, right = (_operand(b, value, uses) for value in node.inputs)
    if left is None or right is None:
        return None
    (a, a_zero), (c, c_zero) = left, right
    if a_zero is not None and a_zero.rank != 0:
        return None  # a vector has one for each row, and stands upright
    zeros = [a_zero, c_zero] if c_zero is not None else [a_zero] if a_zero is not None else []
    return b.op("MatMulInteger", a, c, *zeros)


def _operand(b: Builder, value: Value | None, uses: Uses) -> tuple[Value, Value | None] | None:
    """What is converted to 32 bits, and what is taken from it there; None for anything else."""
    less = uses.sole(value, "Sub")
    q = _widened(less.inputs[0] if less is not None else value)
    if q is None or q.element is None:
        return None
    if less is None:
        return q, None
    zero = less.inputs[1]
    known = integers(zero)
    if known is None:
        same = _widened(zero)
        return (q, same) if same is not None and _fits(same, q) else None
    low, high = bounds(q.element)
    assert zero is not None and zero.shape is not None
    if not known or min(known) < low or max(known) > high or not _fits(zero, q):
        return None
    return q, b.constant(np.array(known).reshape(zero.shape), q.element)


def _widened(value: Value | None) -> Value | None:
    """The integers of 8 bits that a value has in 32."""
    cast = value.producer if value is not None else None
    if cast is None or cast.op != "Cast" or cast.attributes["to"] is not I32:
        return None
    q = cast.inputs[0]
    return q if q is not None and q.element in (I8, U8) else None


def _fits(zero: Value, q: Value) -> bool:
    """Whether a zero point is a number, or one for each column of a matrix."""
    if zero.rank == 0:
        return True
    return zero.rank == 1 and q.rank == 2 and zero.shape[0] == q.shape[1]  # type: ignore[index]


def dynamic_quantize_linear(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x / scale, rounded, and the zero point, in u8, where scale and zero point are those of the
    least and the largest x (DynamicQuantizeLinear-11)."""
    limited = _rounded_to_u8(node, uses)
    total = uses.sole(limited, "Add")
    for part, offset in either_way(total) if total is not None else ():
        rounded, cast = uses.sole(part, "Round"), uses.sole(offset, "Cast")
        quotient = uses.sole(rounded.inputs[0], "Div") if rounded is not None else None
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


def _rounded_to_u8(node: Node, uses: Uses) -> Value | None:
    """What a Cast to u8 has between 0 and 255."""
    clip = uses.sole(node.inputs[0], "Clip")
    if node.attributes["to"] is not U8 or clip is None or len(clip.inputs) != 3:
        return None
    return (
        clip.inputs[0] if is_number(clip.inputs[1], 0) and is_number(clip.inputs[2], 255) else None
    )


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
    rounded = uses.sole(cast.inputs[0], "Round")
    clip = uses.sole(rounded.inputs[0], "Clip") if rounded is not None else None
    if clip is None or not (is_number(clip.inputs[1], 0) and is_number(clip.inputs[2], 255)):
        return False
    less = uses.sole(clip.inputs[0], "Sub")
    quotient = uses.sole(less.inputs[1], "Div") if less is not None else None
    if less is None or quotient is None or not is_number(less.inputs[0], 0):
        return False
    spread = _quotient_by(scale, 255)
    assert spread is not None and spread.producer is not None
    return quotient.inputs[1] is scale and quotient.inputs[0] is spread.producer.inputs[1]
