"""Element types, dimensions, shapes and value types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self, TypeGuard

from bridge.errors import Refused
from bridge.vocabulary.elements import (
    BF16 as BF16,
    BOOL as BOOL,
    BY_IR as BY_IR,
    BY_ONNX as BY_ONNX,
    BY_PRECISION as BY_PRECISION,
    C64 as C64,
    C128 as C128,
    ELEMENTS as ELEMENTS,
    F4E2M1 as F4E2M1,
    F8E4M3FN as F8E4M3FN,
    F8E4M3FNUZ as F8E4M3FNUZ,
    F8E5M2 as F8E5M2,
    F8E5M2FNUZ as F8E5M2FNUZ,
    F8E8M0 as F8E8M0,
    F16 as F16,
    F32 as F32,
    F64 as F64,
    I2 as I2,
    I4 as I4,
    I8 as I8,
    I16 as I16,
    I32 as I32,
    I64 as I64,
    NF4 as NF4,
    STRING as STRING,
    U1 as U1,
    U2 as U2,
    U3 as U3,
    U4 as U4,
    U6 as U6,
    U8 as U8,
    U16 as U16,
    U32 as U32,
    U64 as U64,
    Element as Element,
    element_of as element_of,
)

I64_MAX = (1 << 63) - 1
"""The largest size that both formats hold, and the end of a slice up to the last element."""


@dataclass(frozen=True)
class Interval:
    """A dimension known to lie between `low` and `high` (None: no upper bound)."""

    low: int = 0
    high: int | None = None

    def __repr__(self) -> str:
        if self.low == 0 and self.high is None:
            return "?"
        return f"{self.low}..{'' if self.high is None else self.high}"


ANY = Interval()
"""An unknown dimension."""


class SharedSymbol(str):
    """A symbol that several inputs declare: no comparison is decided by it."""

    __slots__ = ()


Dim = int | str | Interval
"""A dimension: a size, a symbol (equal symbols are equal sizes), or an interval of sizes."""

Shape = tuple[Dim, ...] | None
"""A shape: dimensions, or None if not even the rank is known."""


@dataclass(frozen=True)
class TensorType:
    """A tensor of `element` (None: unknown) with `shape`."""

    element: Element | None = None
    shape: Shape = None

    @property
    def rank(self) -> int | None:
        """The number of axes, None if it is unknown."""
        return None if self.shape is None else len(self.shape)

    def __repr__(self) -> str:
        return f"{self.element or '?'}{format_shape(self.shape)}"


@dataclass(frozen=True)
class ContainerType:
    """A sequence or an optional, which holds values of type `item`."""

    item: Type

    def of(self, item: Type) -> Self:
        """The same of other values."""
        return type(self)(item)


class SequenceType(ContainerType):
    """A sequence of values of one type."""

    def __repr__(self) -> str:
        return f"seq({self.item})"


class OptionalType(ContainerType):
    """A value of type `item`, or nothing."""

    def __repr__(self) -> str:
        return f"optional({self.item})"


@dataclass(frozen=True)
class ForeignType:
    """A type that only one format has (ONNX: maps and sparse tensors). `spelled` is the type in
    the notation of that format, `name` is for people."""

    name: str
    spelled: bytes

    def __repr__(self) -> str:
        return self.name


Type = TensorType | SequenceType | OptionalType | ForeignType

UNKNOWN = TensorType()
"""A tensor of unknown element type and shape."""


def format_shape(shape: Shape) -> str:
    """`[2,batch,?]`, or `[*]` for an unknown rank."""
    return "[*]" if shape is None else "[" + ",".join(str(d) for d in shape) + "]"


def is_static(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    """Whether every dimension is a number."""
    if shape is None:
        return False
    for dim in shape:  # noqa: SIM110 (a generator takes twice as long)
        if not isinstance(dim, int):
            return False
    return True


def size_of(shape: Sequence[int]) -> int:
    """Number of elements of a static shape."""
    return prod(shape)


def low(dim: Dim) -> int:
    """The smallest size `dim` can be."""
    return dim if isinstance(dim, int) else dim.low if isinstance(dim, Interval) else 0


def high(dim: Dim) -> int | None:
    """The largest size `dim` can be, None if unbounded."""
    return dim if isinstance(dim, int) else dim.high if isinstance(dim, Interval) else None


def interval(lo: int, hi: int | None) -> Dim:
    """The dimension between `lo` and `hi`: a number if they are equal."""
    return lo if lo == hi else Interval(lo, hi)


def join_dim(a: Dim, b: Dim) -> Dim:
    """The dimension of a value that comes from one of two branches, with `a` or `b`."""
    if a == b:
        return a
    ha, hb = high(a), high(b)
    return interval(min(low(a), low(b)), None if ha is None or hb is None else max(ha, hb))


def join_shape(a: Shape, b: Shape) -> Shape:
    """The shape of a value that has shape `a` or `b`."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(join_dim(x, y) for x, y in zip(a, b, strict=True))


def join(a: Type, b: Type) -> Type:
    """The type of a value that has type `a` or `b`. Raises Refused if they exclude each other
    (different element types, or a tensor and a sequence)."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.element and b.element and a.element is not b.element:
            raise Refused(f"it is {a} or {b}")
        return TensorType(a.element or b.element, join_shape(a.shape, b.shape))
    if isinstance(a, ContainerType) and isinstance(b, type(a)):
        return a.of(join(a.item, b.item))
    if a == UNKNOWN:
        return b
    if b == UNKNOWN or a == b:
        return a
    raise Refused(f"it is {a} or {b}")


def meet_dim(a: Dim, b: Dim) -> Dim:
    """The dimension that follows from both `a` and `b`. If they contradict, it is `a`."""
    if a == b or isinstance(a, int):
        return a
    if isinstance(b, int):
        return b
    if isinstance(a, str):
        return a
    if isinstance(b, str):
        return b
    highs = [h for h in (a.high, b.high) if h is not None]
    lo, hi = max(a.low, b.low), min(highs) if highs else None
    return a if hi is not None and hi < lo else interval(lo, hi)


def meet_shape(a: Shape, b: Shape) -> Shape:
    """The shape that follows from both `a` and `b`. If they contradict, it is `a`."""
    if a is None:
        return b
    if b is None or a == b or len(a) != len(b):
        return a
    return tuple(meet_dim(x, y) for x, y in zip(a, b, strict=True))


def with_symbols(kind: Type, symbols: Sequence[str | None]) -> Type:
    """The type, with a symbol for each dimension that is open, perhaps from 1 on, and has one. If
    `symbols` have another rank, the type stays as it is."""
    if not isinstance(kind, TensorType) or kind.shape is None or kind.rank != len(symbols):
        return kind
    dims = zip(kind.shape, symbols, strict=True)
    return TensorType(
        kind.element,
        tuple(
            symbol if symbol and dim in (ANY, Interval(1, None)) else dim for dim, symbol in dims
        ),
    )


def meet(a: Type, b: Type) -> Type:
    """The type that follows from both `a` and `b`. If they contradict, it is `a`."""
    if a is b or b is UNKNOWN:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.element and b.element and a.element is not b.element:
            return a
        element, shape = a.element or b.element, meet_shape(a.shape, b.shape)
        return a if element is a.element and shape == a.shape else TensorType(element, shape)
    if a == UNKNOWN:
        return b
    if isinstance(a, ContainerType) and isinstance(b, type(a)):
        return a.of(meet(a.item, b.item))
    return a


def with_dims(type: Type, change: Callable[[Dim], Dim]) -> Type:
    """The type, with each dimension changed."""
    if isinstance(type, ContainerType):
        return type.of(with_dims(type.item, change))
    if not isinstance(type, TensorType) or type.shape is None:
        return type
    return TensorType(type.element, tuple(map(change, type.shape)))


def without_sizes(type: Type) -> Type:
    """The type with every size left open; ranks and symbols stay."""
    return with_dims(type, lambda dim: dim if isinstance(dim, str) else ANY)


def is_same(one: Shape, other: Shape) -> bool:
    """Whether two shapes are known to be the same."""
    return one is not None and one == other and all(isinstance(dim, int | str) for dim in one)


def differ(one: Dim, other: Dim) -> bool:
    """Whether two dimensions are known not to be equal."""
    return isinstance(one, int) and isinstance(other, int) and one != other


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """The dimension of numpy-style broadcasting."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) or isinstance(b, int):
        return a if isinstance(a, int) else b
    if low(a) > 1 and low(b) > 1:
        return meet_dim(a, b)
    if low(a) > 1:
        return a
    if low(b) > 1:
        return b
    return ANY


def broadcast(*shapes: Shape) -> Shape:
    """Numpy-style broadcasting; None as soon as one rank is unknown."""
    if shapes and shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    result: tuple[Dim, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        if not result or not shape:
            result = result or shape
            continue
        rank = max(len(result), len(shape))
        left = (1,) * (rank - len(result)) + result
        right = (1,) * (rank - len(shape)) + shape
        result = tuple(broadcast_dim(x, y) for x, y in zip(left, right, strict=True))
    return result


def innermost(type: Type) -> TensorType:
    """The type of a tensor, or of the tensors in a sequence or optional; unknown for others."""
    if isinstance(type, ContainerType):
        return innermost(type.item)
    return type if isinstance(type, TensorType) else UNKNOWN


class Between:
    """An element between two numbers (None: no bound). It only equals itself, because two elements
    with the same bounds may differ."""

    __slots__ = ("high", "low")

    def __init__(self, low: int | None, high: int | None) -> None:
        self.low = low
        self.high = high

    def __repr__(self) -> str:
        return f"{self.low}..{self.high}"


Part = int | str | Between | None
"""One element: a number, the symbol of a size, bounds, or None for an unknown one."""

KnownValue = tuple[Part, ...]
"""The elements of a short vector of integers, or of a scalar."""
