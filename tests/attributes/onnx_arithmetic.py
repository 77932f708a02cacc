"""ONNX's operators element by element, products and casts, by element type."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.attributes.family import Call, Draw, call, family

TYPES = ("f4", "i4", "i8", "u1", "i1", "f8", "f2", "u4")
BINARY = ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Greater", "Less", "Equal",
          "GreaterOrEqual", "LessOrEqual", "PRelu")  # fmt: skip
UNARY = ("Neg", "Abs", "Sign", "Ceil", "Floor", "Round", "Sqrt", "Exp", "Relu", "Clip", "Identity",
         "IsNaN")  # fmt: skip


@family("onnx", ("1", "", "0"), op=BINARY, type=TYPES, fmod=(None, 1))
def binary(d: Draw, op: str, type: str, fmod: int | None) -> Call | None:
    if fmod and op != "Mod":
        return None
    a, b = d.of(type, 3, 4, scale=10), d.of(type, 4, scale=4)
    if op == "Mod":
        fmod = 1 if type[0] == "f" else fmod
    if op == "Pow":
        return call(op, 16, np.abs(a), np.abs(b) % np.array(3, type))
    return call(op, 16, a, np.where(b == 0, np.array(3, type), b), fmod=fmod)


@family("onnx", op=UNARY, type=TYPES)
def unary(d: Draw, op: str, type: str) -> Call | None:
    return call(op, 14, d.of(type, 3, 4, scale=10))


@family("onnx", ("12", ""), type=TYPES, low=(None, 1, 3), high=(None, 2, 1))
def clips(d: Draw, type: str, low: int | None, high: int | None) -> Call | None:
    ends = (None if end is None else np.array(end, type) for end in (low, high))
    return call("Clip", 13, d.of(type, 3, 4), *ends)


@family(
    "onnx", type=TYPES, to=("FLOAT", "UINT8", "INT8", "INT32", "INT64", "BOOL", "FLOAT16",
                            "DOUBLE", "UINT32", "UINT64"),
)  # fmt: skip
def casts(d: Draw, type: str, to: str) -> Call | None:
    x = np.array([0, 1, -1, 2.5, -2.5, 3.7, 100, -100], np.float32)
    if type[0] == "u" or (type[0] == "f" and to.startswith("UINT")):
        x = np.abs(x)  # A negative float as an unsigned integer is not defined.
    return call("Cast", 21, x.astype(type), to=TensorProto.DataType.Value(to))


@family("onnx", ("1", ""), direction=("LEFT", "RIGHT"), type=("u1", "u2", "u4", "u8"))
def shifts(d: Draw, direction: str, type: str) -> Call | None:
    x, by = np.array([1, 5, 255], type), np.array([0, 3, 7], type)
    return call("BitShift", 11, x, by, direction=direction)


PARAMETERS = {
    "Elu": ("alpha",), "LeakyRelu": ("alpha",), "ThresholdedRelu": ("alpha",), "Celu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"), "Selu": ("alpha", "gamma"), "Shrink": ("lambd", "bias"),
    "Gelu": (), "IsInf": ("detect_negative", "detect_positive"),
}  # fmt: skip


@family("onnx", op=tuple(PARAMETERS), first=(None, 0, 1, 0.3), second=(None, 0, 1, 0.6))
def parametric(d: Draw, op: str, first: float | None, second: float | None) -> Call | None:
    names, switches = PARAMETERS[op], op == "IsInf"
    given = dict(zip(names, (first, second), strict=False))
    if switches != all(value in (0, 1) for value in (first, second)) or (first, second) == (0, 0):
        return None
    x = d.floats(3, 4) * np.float32(3)
    if switches:
        x[0] = [np.inf, -np.inf, np.nan, 1]
    given = {name: value if switches else value and float(value) for name, value in given.items()}
    return call(op, 20, x, **given)


ADDENDS = {"none": None, "scalar": (), "row": (4,), "column": (3, 1), "full": (3, 4)}


@family("onnx", ("12", ""), a=(0, 1), b=(0, 1), alpha=(1.0, 0.5), beta=(1.0, 0.3), c=tuple(ADDENDS))
def gemms(d: Draw, a: int, b: int, alpha: float, beta: float, c: str) -> Call | None:
    shape = ADDENDS[c]
    return call(
        "Gemm", 13, d.floats(*(5, 3) if a else (3, 5)), d.floats(*(4, 5) if b else (5, 4)),
        None if shape is None else d.floats(*shape), transA=a, transB=b, alpha=alpha, beta=beta,
    )  # fmt: skip


@family(
    "onnx", ("1", "", "0"), a=((3,), (2, 3), (4, 2, 3), (2, 1, 2, 3), (1, 3)),
    b=((3,), (3, 2), (4, 3, 5), (2, 4, 3, 1), (3, 1)),
)  # fmt: skip
def products(d: Draw, a: tuple[int, ...], b: tuple[int, ...]) -> Call | None:
    return call("MatMul", 13, d.floats(*a), d.floats(*b))


EQUATIONS = {
    "ij,jk->ik": ((2, 3), (3, 4)), "ii->i": ((3, 3),), "ii": ((3, 3),), "i,j->ij": ((3,), (4,)),
    "...ii": ((2, 3, 3),), "iij": ((3, 3, 2),),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 2)), "ij->ji": ((2, 3),), "abc->b": ((2, 3, 4),),
    "...ij,...jk->...ik": ((2, 1, 3, 4), (5, 4, 2)), "ij,ij->": ((2, 3), (2, 3)), "i->": ((4,),),
    "bhwc,hkc->bhwk": ((2, 3, 4, 5), (3, 6, 5)), "ij,j": ((2, 3), (3,)),
    "ijk,k,j->i": ((2, 3, 4), (4,), (3,)),
}  # fmt: skip


@family("onnx", equation=tuple(EQUATIONS))
def einsums(d: Draw, equation: str) -> Call | None:
    return call("Einsum", 12, *(d.floats(*s) for s in EQUATIONS[equation]), equation=equation)
