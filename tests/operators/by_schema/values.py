"""Values of inputs, from a short text.

| text | value |
| --- | --- |
| `2,3`, `()` | random numbers of this shape |
| `2,3<-2..4` | random integers from -2 up to 3 |
| `2,3>0` | random positive numbers |
| `2,3~` | random numbers between -1 and 1 that are no decimals: nothing falls on a tie |
| `[[1,2]]`, `=5` | these numbers |
| `seq 2,3` | a sequence of tensors, with `;` written as a bar between them: `seq 2,3|1,3` |
"""

from __future__ import annotations

import ast
import re
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

FLOATS = (-0.0, 0.5, 1.5, -2.5, 0.0, 1e3, -1e-6, 2.5, -0.5)
WIDE = 30000
"""The limit of wide integers: their products fit 32 bits."""
TEXTS = ("", "a", "b", "Zebra", "ä", "two words")


def dtype_of(type_: str) -> np.dtype[Any]:
    """The dtype of `float`, `int8`, ..."""
    return helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(type_.upper()))


def is_sequence(text: str) -> bool:
    return text.startswith("seq ")


def value(text: str, type_: str, numbers: str, rng: np.random.Generator) -> Any:
    """The value of a text. `numbers` is `plain` or `special`."""
    if is_sequence(text):
        items = text.removeprefix("seq ")
        return [value(item, type_, numbers, rng) for item in items.split("|") if item != "none"]
    dtype = dtype_of(type_)
    if text.startswith(("[", "=")):
        return np.array(ast.literal_eval(text.lstrip("=")), dtype)
    shape_text, below, limits = text.partition("<")
    shape_text, positive, _ = shape_text.partition(">")
    shape = [int(size) for size in re.findall(r"\d+", shape_text)]
    if below and type_ != "string":
        low, _, high = limits.rpartition("..")
        return rng.integers(int(low or 0), int(high), shape).astype(dtype)
    if positive and not is_float(dtype):
        return rng.integers(1, 2 if dtype == np.bool_ else 6, shape).astype(dtype)
    if positive:
        return rng.uniform(0.2, 2, shape).astype(dtype)
    if text.endswith("~") and is_float(dtype):
        return rng.uniform(-1, 1, shape).astype(dtype)
    if numbers == "plain":
        return _plain(shape, dtype, rng)
    return _special(shape, dtype, rng)


def _plain(shape: list[int], dtype: np.dtype[Any], rng: np.random.Generator) -> np.ndarray:
    if dtype.kind == "O":
        return np.array(rng.choice(TEXTS, shape), object)
    if dtype == np.bool_:
        return np.array(rng.random(shape) < 0.5)
    if is_float(dtype):
        return np.array(np.round(rng.normal(0, 2, shape), 2)).astype(dtype)
    low = 0 if np.issubdtype(dtype, np.unsignedinteger) else -5
    return np.array(rng.integers(low, 8, shape)).astype(dtype)


def _special(shape: list[int], dtype: np.dtype[Any], rng: np.random.Generator) -> np.ndarray:
    """OpenVINO's CPU plugin computes integers of 64 bits in 32."""
    if dtype in (object, np.bool_):
        return _plain(shape, dtype, rng)
    if is_float(dtype):
        pool: Any = np.array(FLOATS).astype(dtype)
    else:
        limits = np.iinfo(dtype)
        wide = dtype.itemsize == 8 or dtype == np.uint32
        low, high = (max(limits.min, -WIDE), WIDE) if wide else (limits.min, limits.max)
        pool = np.array([low, high, 0, 1, high - 1, low + 1, 2], dtype)
    return np.array(rng.choice(pool, shape)).astype(dtype)


def is_float(dtype: np.dtype[Any]) -> bool:
    return np.issubdtype(dtype, np.floating) or dtype == ml_dtypes.bfloat16
