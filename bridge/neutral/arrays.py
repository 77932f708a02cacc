"""Arrays whose sizes come from a model. The memory budget is checked before an array is made."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bridge.limits import budget
from bridge.neutral.types import I64_MAX, size_of


def can_be(shape: Sequence[int], dtype: Any) -> bool:
    """Whether numpy makes an array of this shape; of one without elements it counts the other
    axes, too."""
    size: int = math.prod(dim or 1 for dim in shape) * np.dtype(dtype).itemsize
    return size <= I64_MAX


def spend(shape: Sequence[int], dtype: Any, what: str = "a constant") -> None:
    """Counts an array before it is made. Raises LimitError if the memory budget has no room."""
    sizes = shape if can_be(shape, dtype) else [dim or 1 for dim in shape]
    budget().constant(size_of(sizes) * np.dtype(dtype).itemsize, what)


def zeros(shape: Sequence[int], dtype: Any, what: str = "a constant") -> np.ndarray:
    """An array of zeros."""
    spend(shape, dtype, what)
    return np.zeros(shape, dtype)


def full(
    shape: Sequence[int], value: Any, dtype: Any = None, what: str = "a constant"
) -> np.ndarray:
    """An array of one value; by default of the value's own type."""
    dtype = np.asarray(value).dtype if dtype is None else dtype
    spend(shape, dtype, what)
    return np.full(shape, value, dtype)


def counted(count: int, dtype: Any = np.int64, what: str = "a constant") -> np.ndarray:
    """The numbers 0 to count - 1."""
    spend((count,), dtype, what)
    return np.arange(count, dtype=dtype)
