"""Element types, with their names in each format."""

from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, eq=False)
class Element:
    """An element type of either format.

    `name` is the neutral name. `bits` is the storage width of one element (0 for strings). `onnx`
    is the value of `TensorProto.DataType` (None if ONNX lacks the type). `ir` is the `element_type`
    of a Const, `precision` the precision of a port (None if OpenVINO lacks the type).
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
        """Whether it is a floating-point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type; bool is none."""
        return self.kind in ("int", "uint")

    @property
    def is_signed(self) -> bool:
        """Whether it has numbers below 0."""
        return self.kind in ("int", "float")

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type."""
        if self.kind == "uint":
            return 0, (1 << self.bits) - 1
        return -(1 << self.bits - 1), (1 << self.bits - 1) - 1

    @property
    def dtype(self) -> Any:
        """The numpy dtype of unpacked values (ml_dtypes for the types numpy lacks)."""
        return _dtype(self.name)

    def nbytes(self, count: int) -> int:
        """The bytes of `count` elements in both formats' packed storage. Elements of 3 and 6 bits
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

ELEMENTS: dict[str, Element] = {
    element.name: element for element in list(globals().values()) if isinstance(element, Element)
}
BY_ONNX: dict[int, Element] = {e.onnx: e for e in ELEMENTS.values() if e.onnx is not None}
BY_IR: dict[str, Element] = {e.ir: e for e in ELEMENTS.values() if e.ir is not None}
BY_PRECISION: dict[str, Element] = {
    e.precision: e for e in ELEMENTS.values() if e.precision is not None
}


class NoArray(KeyError):
    """No array holds elements of a type; its name."""

    def __str__(self) -> str:
        return f"nothing computes with {self.args[0]}"


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
        raise NoArray(name)
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
