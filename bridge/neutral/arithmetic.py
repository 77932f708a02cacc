r"""Arithmetic on values, which makes nodes: `(high - low) * last / (group - 1.0)`.

The nodes go to the current builder, the innermost of the `with` statements around: MLIR calls it
the insertion point. The rewriter and the readers make the builder of a rule the current one. Who
builds the body of a Loop or of an If writes `with inner:`.

| Python | node |
| --- | --- |
| `x + y`, `x - y`, `x * y`, `-x`, `abs(x)`, `x ** y` | Add, Sub, Mul, Neg, Abs, Pow |
| `x / y` | Div; of integers as ONNX has it, towards 0 |
| `x % y` | Mod, with the sign of `y`; floats need `b.op("Mod", x, y, fmod=True)` |
| `x < y`, `x <= y`, `x > y`, `x >= y` | Less, LessOrEqual, Greater, GreaterOrEqual |
| `x.equal(y)` | Equal; `x == y` asks whether they are one Value |
| `x & y`, `x \| y`, `x ^ y`, `~x` | And, Or, Xor, Not, of booleans |
| `x[2]`, `x[1:n]` | Gather, Slice along the first axis, as of a shape |

An operand may be a number, a list or an array: it becomes a Constant of the other operand's type.
Nodes come in the order in which Python evaluates: the left operand first.
A comparison gives a Value, which `if`, `and`, `or`, `not` and `0 <= x < n` cannot ask: mypy
refuses them.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from bridge.neutral.builder import Builder, Operand
    from bridge.neutral.graph import Value

CURRENT: ContextVar[Builder] = ContextVar("builder")
"""What makes the nodes of arithmetic."""


def _node(op: str, *operands: Any) -> Value:
    return _builder().op(op, *operands)


def _builder() -> Builder:
    try:
        return CURRENT.get()
    except LookupError:
        raise RuntimeError("arithmetic on values outside of any builder: `with b:`") from None


class Arithmetic:
    """The operators of a Value."""

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # `array * value` is ours, not NumPy's.
    __iter__: ClassVar[None] = None  # Python would count up for ever.
    __contains__: ClassVar[None] = None

    def __add__(self, other: Operand) -> Value:
        return _node("Add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return _node("Add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return _node("Sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return _node("Sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return _node("Mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return _node("Mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return _node("Div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return _node("Div", other, self)

    def __mod__(self, other: Operand) -> Value:
        return _node("Mod", self, other)

    def __pow__(self, other: Operand) -> Value:
        return _node("Pow", self, other)

    def __neg__(self) -> Value:
        return _node("Neg", self)

    def __abs__(self) -> Value:
        return _node("Abs", self)

    def __lt__(self, other: Operand) -> Value:
        return _node("Less", self, other)

    def __le__(self, other: Operand) -> Value:
        return _node("LessOrEqual", self, other)

    def __gt__(self, other: Operand) -> Value:
        return _node("Greater", self, other)

    def __ge__(self, other: Operand) -> Value:
        return _node("GreaterOrEqual", self, other)

    def equal(self, other: Operand) -> Value:
        """Where the elements are the same."""
        return _node("Equal", self, other)

    def __and__(self, other: Operand) -> Value:
        return _node("And", self, other)

    def __or__(self, other: Operand) -> Value:
        return _node("Or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return _node("Xor", self, other)

    def __invert__(self) -> Value:
        return _node("Not", self)

    def __getitem__(self, place: int | slice) -> Value:
        """One element of a vector, a scalar; or those from `start` up to `stop`, which are numbers
        or vectors of one element."""
        b: Any = _builder()
        if not isinstance(place, slice):
            return b.element(self, place)  # type: ignore[no-any-return]
        return b.cut(self, 0, place.start, place.stop)  # type: ignore[no-any-return]
