"""The elements of a value, as far as they are known before the model runs.

known_of(axes).ints        all of them, flattened, or None
known_of(scales).array     all of them, as an array; .reals in f32
known_of(shape).parts      numbers and symbols, None for an unknown element
known_of(shape).dims       the dimensions that a vector holds
known_of(axes).length      the length of a vector
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from bridge.neutral.graph import Value, operand_of
from bridge.neutral.types import (
    ANY,
    I64,
    NF4,
    Between,
    Dim,
    Interval,
    KnownValue,
    Part,
    Shape,
    interval,
    is_static,
    size_of,
)

_bounding: ContextVar[bool] = ContextVar("bounding", default=False)


@contextmanager
def bounding() -> Iterator[None]:
    """Inside the block, values computed from sizes keep the bounds of these sizes. It is for
    devices that need a bound for each size; it takes time."""
    token = _bounding.set(True)
    try:
        yield
    finally:
        _bounding.reset(token)


def is_bounding() -> bool:
    """Whether bounds are kept as OpenVINO keeps them."""
    return _bounding.get()


def bounds(part: Part) -> tuple[int | None, int | None]:
    """The least and the greatest number that an element may be; a symbol is at least 0."""
    match part:
        case int():
            return part, part
        case Between():
            return part.low, part.high
        case str():
            return 0, None
    return None, None


def is_at_least_zero(part: Part) -> bool:
    """Whether an element is known not to be negative."""
    low, _ = bounds(part)
    return low is not None and low >= 0


def between(low: int | None, high: int | None) -> Part:
    """An element with these bounds. Outside of `bounding` it is None unless it is a number."""
    if low is not None and low == high:
        return low
    return Between(low, high) if _bounding.get() and (low, high) != (None, None) else None


def as_part(dim: Dim) -> Part:
    """A size of an axis as an element of a vector."""
    if not isinstance(dim, Interval):
        return dim
    return None if dim == ANY else between(dim.low, dim.high)


def as_dim(part: Part) -> Dim:
    """An element of a vector as the size of an axis."""
    if isinstance(part, int | str):
        return part
    low, high = bounds(part)
    return interval(max(low or 0, 0), None if high is None else max(high, 0))


LONGEST = 1 << 20
"""The most numbers of a constant to read one at a time. No shape or list of places has more."""

HIGHEST_RANK = 1 << 16
"""Beyond the rank of any tensor."""

_WHOLE = ("int", "uint", "bool")


class Known:
    """The knowledge of a value's elements. An absent value has no known elements."""

    __slots__ = ("_value",)

    def __init__(self, value: Value | None) -> None:
        self._value = value

    @property
    def array(self) -> np.ndarray | None:
        """All elements, if they are known."""
        value = self._value
        if value is None:
            return None
        if value.constant is not None:
            return None if value.element is NF4 else value.constant.array()
        if value.computed is not None:
            return value.computed.array()
        whole = self._all_parts()
        if whole is None:
            return None
        array = np.array(whole, (value.element or I64).dtype)
        dims = value.shape
        return array.reshape(dims) if is_static(dims) and size_of(dims) == array.size else array

    @property
    def reals(self) -> np.ndarray | None:
        """All elements in f32, of a constant of any size, also behind a Cast."""
        array = Known(operand_of(self._value, "Cast") or self._value).array
        return None if array is None else array.astype(np.float32)

    @property
    def ints(self) -> tuple[int, ...] | None:
        """All elements of an integer value, flattened, if they are known."""
        value = self._value
        if value is None:
            return None
        whole = self._all_parts()
        if whole is not None:
            return whole
        if value.element is None or value.element.kind not in _WHOLE:
            return None
        tensor = value.constant
        if tensor is not None:
            array = tensor.array() if tensor.size <= LONGEST else None
        else:
            array = None if value.computed is None else value.computed.array()
        return None if array is None else tuple(map(int, array.reshape(-1).tolist()))

    @property
    def parts(self) -> KnownValue | None:
        """The elements of an integer value, flattened, as far as known."""
        value = self._value
        if value is None:
            return None
        return value.known_value if value.known_value is not None else self.ints

    @property
    def length(self) -> int | None:
        """The length of a vector that names axes, if it is known. No tensor has more axes than
        HIGHEST_RANK, whatever a file says."""
        value = self._value
        if value is None:
            return None
        if value.known_value is not None:
            return len(value.known_value)
        shape = value.shape
        length = shape[0] if shape is not None and len(shape) == 1 else None
        return length if isinstance(length, int) and length <= HIGHEST_RANK else None

    @property
    def dims(self) -> Shape:
        """The shape whose dimensions a vector holds, as far as known."""
        parts = self.parts
        if parts is not None:
            return tuple(ANY if isinstance(d, int) and d < 0 else as_dim(d) for d in parts)
        return unknown(self.length)

    def _all_parts(self) -> tuple[int, ...] | None:
        parts = None if self._value is None else self._value.known_value
        if parts is None or not all(isinstance(part, int) for part in parts):
            return None
        return parts  # type: ignore[return-value]


def known_of(value: Value | None) -> Known:
    """The knowledge of a value's elements."""
    return Known(value)


def unknown(rank: int | None) -> Shape:
    """A shape with this rank and unknown sizes (None: the rank is unknown too). A rank beyond
    HIGHEST_RANK counts as unknown, whatever a file says."""
    return None if rank is None or rank > HIGHEST_RANK else (ANY,) * rank
