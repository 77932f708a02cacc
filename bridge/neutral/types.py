"""Element types, dimensions, shapes and value types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard


@dataclass(frozen=True, eq=False)
class Element:
    """An element type of either format.

    `name` is the neutral name, `bits` the storage width of one element (0 for strings), `onnx` the
    value of `TensorProto.DataType` (None where ONNX lacks the type), `ir` the spelling of a Const's
    `element_type` and `precision` that of a port (None where OpenVINO lacks the type).
    """

    name: str
    bits: int
    kind: str
    onnx: int | None
    ir: str | None
    precision: str | None

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name.upper()

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        return self.kind in ("int", "float")

    @property
    def dtype(self) -> Any:
        """The numpy dtype of unpacked values (ml_dtypes for the types numpy lacks)."""
        return _dtype(self.name)

    def nbytes(self, count: int) -> int:
        """Bytes that `count` elements take in both formats' packed storage; those of 3 and 6 bits
        fill groups of 3 bytes."""
        if self.bits in (3, 6):
            return -(-count // (24 // self.bits)) * 3
        return (count * self.bits + 7) // 8


F16 = Element("f16", 16, "float", 10, "f16", "FP16")
BF16 = Element("bf16", 16, "float", 16, "bf16", "BF16")
F32 = Element("f32", 32, "float", 1, "f32", "FP32")
F64 = Element("f64", 64, "float", 11, "f64", "FP64")
I8 = Element("i8", 8, "int", 3, "i8", "I8")
I16 = Element("i16", 16, "int", 5, "i16", "I16")
I32 = Element("i32", 32, "int", 6, "i32", "I32")
I64 = Element("i64", 64, "int", 7, "i64", "I64")
U8 = Element("u8", 8, "uint", 2, "u8", "U8")
U16 = Element("u16", 16, "uint", 4, "u16", "U16")
U32 = Element("u32", 32, "uint", 12, "u32", "U32")
U64 = Element("u64", 64, "uint", 13, "u64", "U64")
BOOL = Element("bool", 8, "bool", 9, "boolean", "BOOL")
STRING = Element("string", 0, "string", 8, "string", "STRING")
C64 = Element("c64", 64, "complex", 14, None, None)
C128 = Element("c128", 128, "complex", 15, None, None)
F8E4M3FN = Element("f8e4m3fn", 8, "float", 17, "f8e4m3", "F8E4M3")
F8E4M3FNUZ = Element("f8e4m3fnuz", 8, "float", 18, None, None)
F8E5M2 = Element("f8e5m2", 8, "float", 19, "f8e5m2", "F8E5M2")
F8E5M2FNUZ = Element("f8e5m2fnuz", 8, "float", 20, None, None)
U4 = Element("u4", 4, "uint", 21, "u4", "U4")
I4 = Element("i4", 4, "int", 22, "i4", "I4")
F4E2M1 = Element("f4e2m1", 4, "float", 23, "f4e2m1", "F4E2M1")
F8E8M0 = Element("f8e8m0", 8, "float", 24, "f8e8m0", "F8E8M0")
U2 = Element("u2", 2, "uint", 25, "u2", "U2")
I2 = Element("i2", 2, "int", 26, None, None)
U1 = Element("u1", 1, "uint", None, "u1", "BIN")
U3 = Element("u3", 3, "uint", None, "u3", "U3")
U6 = Element("u6", 6, "uint", None, "u6", "U6")
NF4 = Element("nf4", 4, "float", None, "nf4", "NF4")

I64_MAX = (1 << 63) - 1
"""The largest size that both formats hold, and the end of a slice up to the last element."""

ELEMENTS: dict[str, Element] = {
    element.name: element for element in list(globals().values()) if isinstance(element, Element)
}
BY_ONNX: dict[int, Element] = {e.onnx: e for e in ELEMENTS.values() if e.onnx is not None}
BY_IR: dict[str, Element] = {e.ir: e for e in ELEMENTS.values() if e.ir is not None}
BY_PRECISION: dict[str, Element] = {
    e.precision: e for e in ELEMENTS.values() if e.precision is not None
}


@cache
def _dtype(name: str) -> Any:
    import numpy

    standard = {
        "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool", "string": "object",
        "c64": "complex64", "c128": "complex128", "u1": "uint8", "u3": "uint8", "u6": "uint8",
        **{f"{k}{b}": f"{n}{b}" for k, n in (("i", "int"), ("u", "uint")) for b in (8, 16, 32, 64)},
    }  # fmt: skip
    if name in standard:
        return numpy.dtype(standard[name])
    import ml_dtypes

    extended = {
        "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
        "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu",
        "f4e2m1": "float4_e2m1fn", "u4": "uint4", "i4": "int4", "u2": "uint2", "i2": "int2",
    }  # fmt: skip
    if name not in extended:
        raise KeyError(f"numpy has no type for {name}")
    return numpy.dtype(getattr(ml_dtypes, extended[name]))


@cache
def _elements_by_dtype() -> dict[Any, Element]:
    table = {}
    for element in ELEMENTS.values():
        if element.name not in ("u1", "u3", "u6", "nf4"):
            table[element.dtype] = element
    return table


def element_of(dtype: Any) -> Element:
    """The element type of a numpy dtype."""
    if dtype.kind in "UST":
        return STRING
    return _elements_by_dtype()[dtype]


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
"""A dimension of which nothing is known."""

Dim = int | str | Interval
"""A dimension: a size, a symbol (equal symbols are equal sizes), or an interval of sizes."""

Shape = tuple[Dim, ...] | None
"""A shape: dimensions, or None where not even the rank is known."""


@dataclass(frozen=True)
class TensorType:
    """A tensor of `element` (None: unknown) with `shape`."""

    element: Element | None = None
    shape: Shape = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    def __repr__(self) -> str:
        return f"{self.element or '?'}{format_shape(self.shape)}"


@dataclass(frozen=True)
class SequenceType:
    """A sequence of values of one type."""

    item: Type

    def __repr__(self) -> str:
        return f"seq({self.item})"


@dataclass(frozen=True)
class OptionalType:
    """A value of type `item`, or nothing."""

    item: Type

    def __repr__(self) -> str:
        return f"optional({self.item})"


@dataclass(frozen=True)
class ForeignType:
    """A type that only one format has (ONNX: maps and sparse tensors): `spelled` is what that
    format writes for it, `name` is for people."""

    name: str
    spelled: bytes

    def __repr__(self) -> str:
        return self.name


Type = TensorType | SequenceType | OptionalType | ForeignType

UNKNOWN = TensorType()
"""A tensor of which nothing is known."""


def format_shape(shape: Shape) -> str:
    """`[2,batch,?]`, or `[*]` for an unknown rank."""
    return "[*]" if shape is None else "[" + ",".join(str(d) for d in shape) + "]"


def is_static(shape: Shape) -> TypeGuard[tuple[int, ...]]:
    """Whether every dimension is a number."""
    return shape is not None and all(isinstance(d, int) for d in shape)


def size_of(shape: Sequence[int]) -> int:
    """Number of elements of a static shape."""
    count = 1
    for dim in shape:
        count *= dim
    return count


def low(dim: Dim) -> int:
    """The smallest size `dim` can be."""
    return dim if isinstance(dim, int) else dim.low if isinstance(dim, Interval) else 0


def high(dim: Dim) -> int | None:
    """The largest size `dim` can be, None where unbounded."""
    return dim if isinstance(dim, int) else dim.high if isinstance(dim, Interval) else None


def interval(lo: int, hi: int | None) -> Dim:
    """The dimension between `lo` and `hi`: a number where they meet."""
    return lo if lo == hi else Interval(lo, hi)


def join_dim(a: Dim, b: Dim) -> Dim:
    """What is known of a dimension that is `a` or `b` (two branches meet)."""
    if a == b:
        return a
    ha, hb = high(a), high(b)
    return interval(min(low(a), low(b)), None if ha is None or hb is None else max(ha, hb))


def join_shape(a: Shape, b: Shape) -> Shape:
    """What is known of a shape that is `a` or `b`."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(join_dim(x, y) for x, y in zip(a, b, strict=True))


def join(a: Type, b: Type) -> Type:
    """What is known of a value that has type `a` or `b`; raises TypeError where they exclude
    each other (different element types, or a tensor and a sequence)."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.element and b.element and a.element is not b.element:
            raise TypeError(f"{a} and {b}")
        return TensorType(a.element or b.element, join_shape(a.shape, b.shape))
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return SequenceType(join(a.item, b.item))
    if isinstance(a, OptionalType) and isinstance(b, OptionalType):
        return OptionalType(join(a.item, b.item))
    if a == UNKNOWN:
        return b
    if b == UNKNOWN or a == b:
        return a
    raise TypeError(f"{a} and {b}")


def meet_dim(a: Dim, b: Dim) -> Dim:
    """What is known of a dimension that is both `a` and `b`. A contradiction keeps `a`."""
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
    """What is known of a shape that is both `a` and `b`. A contradiction keeps `a`."""
    if a is None:
        return b
    if b is None or len(a) != len(b):
        return a
    return tuple(meet_dim(x, y) for x, y in zip(a, b, strict=True))


def meet(a: Type, b: Type) -> Type:
    """What is known of a value of which both `a` and `b` hold. A contradiction keeps `a`."""
    if a is b or b == UNKNOWN:
        return a
    if a == UNKNOWN:
        return b
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.element and b.element and a.element is not b.element:
            return a
        return TensorType(a.element or b.element, meet_shape(a.shape, b.shape))
    if isinstance(a, SequenceType) and isinstance(b, SequenceType):
        return SequenceType(meet(a.item, b.item))
    if isinstance(a, OptionalType) and isinstance(b, OptionalType):
        return OptionalType(meet(a.item, b.item))
    return a


def without_sizes(type: Type) -> Type:
    """The type with every size left open; ranks and symbols stay."""
    if isinstance(type, SequenceType):
        return SequenceType(without_sizes(type.item))
    if isinstance(type, OptionalType):
        return OptionalType(without_sizes(type.item))
    if not isinstance(type, TensorType) or type.shape is None:
        return type
    shape = tuple(dim if isinstance(dim, str) else ANY for dim in type.shape)
    return TensorType(type.element, shape)


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """The dimension of numpy-style broadcasting."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) or isinstance(b, int):
        known = a if isinstance(a, int) else b
        return known
    if low(a) > 1 and low(b) > 1:
        return meet_dim(a, b)
    if low(a) > 1:
        return a
    if low(b) > 1:
        return b
    return ANY


def broadcast(*shapes: Shape) -> Shape:
    """Numpy-style broadcasting; None as soon as one rank is unknown."""
    result: tuple[Dim, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        rank = max(len(result), len(shape))
        left = (1,) * (rank - len(result)) + result
        right = (1,) * (rank - len(shape)) + shape
        result = tuple(broadcast_dim(x, y) for x, y in zip(left, right, strict=True))
    return result


def innermost(type: Type) -> TensorType:
    """The type of a tensor, or of those that a sequence or optional holds; unknown for others."""
    if isinstance(type, SequenceType | OptionalType):
        return innermost(type.item)
    return type if isinstance(type, TensorType) else UNKNOWN
