"""MatMulInteger, ConvInteger, DynamicQuantizeLinear, for which onnxruntime has 8-bit kernels.
Tools that quantise weights write them in parts."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, Term, Var, op, var
from bridge.neutral.types import F32, I8, I32, U8, Element
from bridge.operators.nn.windows import onnx_pads
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses, zero_points

IntegerOperand = tuple[Value, Value | None]
"""Integers of 8 bits and their zero point."""


@dataclass(frozen=True)
class _Less:
    """The terms of integers of 8 bits in a wider type, less a zero point."""

    q: Var
    zero: Var
    own_zero: Var
    """A zero point with the same conversion as the integers."""
    term: Term

    @classmethod
    def of(cls, wide: Element) -> _Less:
        q, zero, own_zero = var(I8, U8), var(), var(I8, U8, rank=0)
        integers, converted = (op("Cast", x, to=wide).shared() for x in (q, own_zero))
        return cls(q, zero, own_zero, (integers - (zero | converted)) | integers)

    def found(self, b: Builder, found: Found) -> IntegerOperand | None:
        """The integers and their zero point; None if the zero point does not fit their type."""
        q, zero = found[self.q], found.get(self.zero)
        known = None if zero is None else known_of(zero).reals
        if zero is None:
            own = found.get(self.own_zero)
            return (q, own) if own is None or own.element is q.element else None
        if known is None or q.element is None or zero_points(zero, q.element, known) is None:
            return None
        if known.size == 1 and known.ndim <= (q.rank or 0):
            return q, b.constant(known.reshape(()), q.element)
        columns = known.ndim == 1 and q.rank == 2 and q.dims[1] == known.size
        return (q, b.constant(known, q.element)) if columns else None


LEFT, RIGHT = _Less.of(I32), _Less.of(I32)
PRODUCT = op("MatMul", LEFT.term, RIGHT.term, transpose_a=False, transpose_b=False)


@fuses(PRODUCT)
def matmul_integer(b: Builder, match: Found, uses: Uses) -> Value | None:
    """The product of integers of 8 bits in 32, each less a zero point."""
    left, right = LEFT.found(b, match), RIGHT.found(b, match)
    if left is None or right is None or _vectors(left):
        return None  # a vector has one zero point for each row, and stands upright
    return b.op("MatMulInteger", left[0], right[0], left[1], right[1])


DATA, FILTERS = _Less.of(F32), _Less.of(F32)
CONV = op("Conv", DATA.term, FILTERS.term, None)


@fuses(op("Cast", CONV, to=I32))
def conv_integer(b: Builder, match: Found, uses: Uses) -> Value | None:
    """The convolution of integers of 8 bits in f32, each less a zero point, as i32."""
    data, filters = DATA.found(b, match), FILTERS.found(b, match)
    if data is None or filters is None or _vectors(data, filters):
        return None
    inputs = [data[0], filters[0], data[1], filters[1]]
    return b.op("ConvInteger", *inputs, **onnx_pads(match.node(CONV).attributes))


def _vectors(*operands: IntegerOperand) -> list[Value]:
    """Zero points that have several numbers."""
    return [zero for _, zero in operands if zero is not None and zero.rank != 0]


X = var(F32)
GREATEST, LEAST = (
    op(name, op(f"Reduce{name}", X, keepdims=False).shared(), 0, None).shared()
    for name in ("Max", "Min")
)
SPAN = (GREATEST - LEAST).shared()
SCALE = ((op("Where", op("Equal", SPAN, 0), 255, SPAN) | SPAN) / 255).shared()
EXACT_ZERO = op("Clip", 0 - LEAST / SCALE, 0, 255)
ZERO_POINT = op("Cast", op("Round", EXACT_ZERO), to=U8).shared()
ROUNDED = op("Round", X / SCALE)


@fuses(op("Cast", op("Clip", ROUNDED + op("Cast", ZERO_POINT), 0, 255), to=U8))
def dynamic_quantize_linear(b: Builder, match: Found, uses: Uses) -> Value | None:
    """x / scale, rounded, plus the zero point, in u8. Scale and zero point come from the least and
    the largest x (DynamicQuantizeLinear-11)."""
    if match[SCALE].rank != 0 or match[ZERO_POINT].rank != 0:
        return None
    q, scale, zero_point = b.ops("DynamicQuantizeLinear", 3, match[X])
    uses.hand_over(match[SCALE], scale, inside=2)
    uses.hand_over(match[ZERO_POINT], zero_point, inside=1)
    return q
