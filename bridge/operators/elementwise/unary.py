"""Functions of one element: the output is like the input."""

from __future__ import annotations

from bridge.neutral.inference import infers, same

infers(
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Ceil",
    "Clip",
    "Cos",
    "Cosh",
    "Erf",
    "ErfInv",
    "Exp",
    "Floor",
    "Log",
    "Neg",
    "Not",
    "Reciprocal",
    "Round",
    "Sign",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
)(same)
