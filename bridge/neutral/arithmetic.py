r"""Arithmetic on values, which makes nodes: `(high - low) * last / (group - 1.0)`.

The nodes go to the current builder. The innermost `with builder:` block around sets it; MLIR calls
it the insertion point. The rewriter and the readers make the builder of a rule the current one.
A rule that builds the body of a Loop or an If writes `with inner:`.

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
Nodes are made in Python's order of evaluation: the left operand first.
A comparison gives a Value, and Python counts every Value as true. So `if`, `and`, `not` and
`0 <= x < n` do not test the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

import numpy as np

Argument: TypeAlias = "Arithmetic | float | Sequence[float] | np.ndarray | np.generic | None"
"""An input of a node to be made. Numbers become a Constant: of the type of the other inputs if the
operator broadcasts them, else as `Builder.constant` makes it."""


class NodeMaker(Protocol):
    """What arithmetic asks of a builder (`bridge.neutral.builder.Builder`)."""

    def op(self, op: str, *inputs: Argument) -> Any:
        """The single output of a new node."""

    def cut(self, x: Any, axis: int, start: Any, end: Any) -> Any:
        """The elements of `x` from `start` up to `end` along an axis."""

    def element(self, x: Any, index: int) -> Any:
        """One element of a vector, a scalar."""


CURRENT: ContextVar[NodeMaker] = ContextVar("builder")
"""The builder that makes the nodes of arithmetic."""

Operand = TypeVar("Operand", bound="Arithmetic")


def _builder() -> NodeMaker:
    try:
        return CURRENT.get()
    except LookupError:
        raise RuntimeError("arithmetic on values outside of any builder: `with b:`") from None


def _alone(op: str) -> Callable[[Operand], Operand]:
    return lambda value: _builder().op(op, value)


def _of(op: str) -> Callable[[Operand, Argument], Operand]:
    return lambda value, other: _builder().op(op, value, other)


def _reflected(op: str) -> Callable[[Operand, Argument], Operand]:
    return lambda value, other: _builder().op(op, other, value)


class Arithmetic:
    """The operators of a Value."""

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # `array * value` is ours, not NumPy's.
    __iter__: ClassVar[None] = None  # Python would count up for ever.
    __contains__: ClassVar[None] = None

    __add__, __radd__ = _of("Add"), _reflected("Add")
    __sub__, __rsub__ = _of("Sub"), _reflected("Sub")
    __mul__, __rmul__ = _of("Mul"), _reflected("Mul")
    __truediv__, __rtruediv__ = _of("Div"), _reflected("Div")
    __mod__, __pow__ = _of("Mod"), _of("Pow")
    __and__, __or__, __xor__ = _of("And"), _of("Or"), _of("Xor")
    __lt__, __le__ = _of("Less"), _of("LessOrEqual")
    __gt__, __ge__ = _of("Greater"), _of("GreaterOrEqual")
    equal = _of("Equal")

    __neg__, __abs__, __invert__ = _alone("Neg"), _alone("Abs"), _alone("Not")

    def __getitem__(self, place: int | slice) -> Self:
        """One element of a vector, a scalar; or the elements from `start` up to `stop`, which are
        numbers or vectors of one element."""
        made: Self
        if isinstance(place, slice):
            made = _builder().cut(self, 0, place.start, place.stop)
        else:
            made = _builder().element(self, place)
        return made
